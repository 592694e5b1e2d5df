import { Alert, Button, FileButton, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { type DragEvent, type FormEvent, type ReactNode, useState } from 'react';
import { documentText } from '../../../../src/domain/document-text.ts';
import type { Refusal } from '../../ui/actions/refusal.ts';
import { Folded } from '../../ui/folded.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { RefusalAlert } from '../../ui/states/refusal-alert.tsx';

/** Source of the description: a URL with request headers, or text. */
export type Source = { url?: string; headers?: Record<string, string>; document?: string };

type Props = {
  title: string;
  text: string;
  /** Initial URL. */
  url?: string | undefined;
  onRead: (source: Source) => void;
  isReading: boolean;
  refusal: Refusal;
  /** Additional fields. */
  children?: ReactNode;
};

const mostBytes = 16 * 1024 * 1024;

export function SourceForm({ title, text: about, url: known, onRead, isReading, refusal, children }: Props) {
  const [url, setUrl] = useState(known ?? '');
  const [text, setText] = useState('');
  const [header, setHeader] = useState('Authorization');
  const [credential, setCredential] = useState('');
  const [tooLarge, setTooLarge] = useState<string>();
  const read = async (file: File | null | undefined) => {
    if (!file) return;
    setTooLarge(file.size > mostBytes ? file.name : undefined);
    if (file.size <= mostBytes) onRead({ document: documentText(new Uint8Array(await file.arrayBuffer())) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const headers = credential && { headers: { [header.trim()]: credential.trim() } };
    const source: Source = text.trim() === '' ? { url: url.trim(), ...headers } : { document: text };
    if (source.document !== undefined || source.url !== '') onRead(source);
  };
  return (
    <Section title={title} text={about}>
      <form onSubmit={submit} noValidate {...useDrop((file) => void read(file))}>
        <Stack gap="sm">
          <RefusalAlert refusal={refusal} title="Description not read" />
          {tooLarge && (
            <Alert color="red" role="alert" title="File too large">
              {tooLarge} is larger than 16 MB. Enter its URL, or import it with the command line.
            </Alert>
          )}
          <TextInput
            label="Description URL"
            placeholder="https://api.example.com/openapi.json"
            type="url"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
          />
          <Folded label="URL requires a credential">
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
          </Folded>
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
              Read description{' '}
            </Button>
            <FileButton onChange={(file) => void read(file)} accept=".json,.yaml,.yml,.har,.txt">
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
function useDrop(take: (file: File | undefined) => void) {
  const [isOver, setOver] = useState(false);
  return {
    className: isOver ? 'th-drop th-drop-over' : 'th-drop',
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      take(event.dataTransfer.files[0]);
    },
  };
}
