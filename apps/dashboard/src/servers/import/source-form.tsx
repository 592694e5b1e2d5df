import { Alert, Button, FileButton, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { decodeDocument } from '@toolhost/json/document-text';
import { type DragEvent, type FormEvent, type ReactNode, useState } from 'react';
import type { FormErrors } from '../../ui/actions/form-errors.ts';
import { Collapsible } from '../../ui/collapsible.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { FormErrorAlert } from '../../ui/states/form-error-alert.tsx';

/** Source of the description: a URL with request headers, or text. */
export type Source = { url?: string; headers?: Record<string, string>; document?: string };

type Props = {
  title: string;
  text: string;
  /** Initial URL. */
  url?: string | undefined;
  onRead: (source: Source) => void;
  isReading: boolean;
  formErrors: FormErrors;
  /** Additional fields. */
  children?: ReactNode;
};

const maxBytes = 16 * 1024 * 1024;

export function SourceForm({
  title,
  text: description,
  url: initialUrl,
  onRead,
  isReading,
  formErrors,
  children,
}: Props) {
  const [url, setUrl] = useState(initialUrl ?? '');
  const [text, setText] = useState('');
  const [header, setHeader] = useState('Authorization');
  const [credential, setCredential] = useState('');
  const [oversizedName, setOversizedName] = useState<string>();
  const readFile = async (file: File | null | undefined) => {
    if (!file) return;
    setOversizedName(file.size > maxBytes ? file.name : undefined);
    if (file.size <= maxBytes) onRead({ document: decodeDocument(new Uint8Array(await file.arrayBuffer())) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const headers = credential && { headers: { [header.trim()]: credential.trim() } };
    const source: Source = text.trim() === '' ? { url: url.trim(), ...headers } : { document: text };
    if (source.document !== undefined || source.url !== '') onRead(source);
  };
  return (
    <Section title={title} text={description}>
      <form onSubmit={submit} noValidate {...useDrop((file) => void readFile(file))}>
        <Stack gap="sm">
          <FormErrorAlert formErrors={formErrors} title="Description not read" />
          {oversizedName && (
            <Alert color="red" role="alert" title="File too large">
              {oversizedName} is larger than 16 MB. Enter its URL, or import it with the command line.
            </Alert>
          )}
          <TextInput
            label="Description URL"
            placeholder="https://api.example.com/openapi.json"
            type="url"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
          />
          <Collapsible label="URL requires a credential">
            <Group gap="sm" align="flex-start">
              <TextInput
                label="Header"
                flex="1 1 10rem"
                value={header}
                onChange={(event) => setHeader(event.currentTarget.value)}
              />
              <SecretInput
                label="Value"
                description="Sent only to this URL, and stored encrypted with the server."
                placeholder="Bearer …"
                flex="2 1 14rem"
                value={credential}
                autoComplete="off"
                onChange={(event) => setCredential(event.currentTarget.value)}
              />
            </Group>
          </Collapsible>
          <Textarea
            label="Or paste text"
            description="JSON, YAML, or a curl command."
            className="th-mono"
            autosize
            minRows={3}
            maxRows={10}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            spellCheck={false}
          />
          {children}
          <Group gap="sm">
            <Button type="submit" loading={isReading} disabled={url.trim() === '' && text.trim() === ''}>
              Read description
            </Button>
            <FileButton onChange={(file) => void readFile(file)} accept=".json,.yaml,.yml,.har,.txt">
              {(props) => (
                <Button {...props} variant="default" leftSection={<IconFileUpload size={16} />} disabled={isReading}>
                  Choose file
                </Button>
              )}
            </FileButton>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

/** Returns props that accept a dropped file. */
function useDrop(onFile: (file: File | undefined) => void) {
  const [isDragOver, setDragOver] = useState(false);
  return {
    className: isDragOver ? 'th-drop th-drop-over' : 'th-drop',
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setDragOver(true);
    },
    onDragLeave: () => setDragOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setDragOver(false);
      onFile(event.dataTransfer.files[0]);
    },
  };
}
