import { Alert, Button, Checkbox, FileButton, Group, PasswordInput, Stack, Textarea, TextInput } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { type DragEvent, type FormEvent, type ReactNode, useState } from 'react';
import { documentText } from '../../../../src/domain/document-text.ts';
import type { Refusal } from '../../ui/actions/refusal.ts';
import { Section } from '../../ui/section.tsx';
import { RefusalAlert } from '../../ui/states/refusal-alert.tsx';

/** Where the description comes from: an address with headers for fetching it, or a text. */
export type Source = { url?: string; headers?: Record<string, string>; document?: string };

type Header = { name: string; value: string };

type Props = {
  title: string;
  text: string;
  /** The address to begin with. */
  url?: string | undefined;
  onRead: (source: Source) => void;
  isReading: boolean;
  refusal: Refusal;
  /** What else is asked. */
  children?: ReactNode;
};

const mostBytes = 16 * 1024 * 1024;

export function SourceForm({ title, text: about, url: known, onRead, isReading, refusal, children }: Props) {
  const [url, setUrl] = useState(known ?? '');
  const [text, setText] = useState('');
  const [header, setHeader] = useState<Header>();
  const [tooLarge, setTooLarge] = useState<string>();
  const [isOver, setOver] = useState(false);
  const read = async (file: File | null | undefined) => {
    if (!file) return;
    setTooLarge(file.size > mostBytes ? file.name : undefined);
    if (file.size <= mostBytes) onRead({ document: documentText(new Uint8Array(await file.arrayBuffer())) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const headers = header?.value && { headers: { [header.name.trim()]: header.value.trim() } };
    const source: Source = text.trim() === '' ? { url: url.trim(), ...headers } : { document: text };
    if (source.document !== undefined || source.url !== '') onRead(source);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void read(event.dataTransfer.files[0]);
  };
  return (
    <Section title={title} text={about}>
      <form
        onSubmit={submit}
        noValidate
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        className={isOver ? 'th-drop th-drop-over' : 'th-drop'}
      >
        <Stack gap="sm">
          <RefusalAlert refusal={refusal} title="The description was not read" />
          {tooLarge && (
            <Alert color="red" role="alert" title="The file is too large">
              {tooLarge} has more than 16 MB. Give its address, or import it with the command line.
            </Alert>
          )}
          <TextInput
            label="Address of the description"
            placeholder="https://api.example.com/openapi.json"
            type="url"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
          />
          <CredentialField header={header} onHeader={setHeader} />
          <Textarea
            label="Or its text"
            description="Paste JSON, YAML or a curl command."
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
              Read the description
            </Button>
            <FileButton onChange={(file) => void read(file)} accept=".json,.yaml,.yml,.har,.txt">
              {(props) => (
                <Button {...props} variant="default" leftSection={<IconFileUpload size={16} />} disabled={isReading}>
                  Choose a file
                </Button>
              )}
            </FileButton>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

/** A header for fetching a description that is behind a login. */
function CredentialField({ header, onHeader }: { header: Header | undefined; onHeader: (header?: Header) => void }) {
  return (
    <>
      <Checkbox
        label="The address needs a credential"
        checked={header !== undefined}
        onChange={(event) => onHeader(event.currentTarget.checked ? { name: 'Authorization', value: '' } : undefined)}
      />
      {header && (
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Header"
            flex="1 1 10rem"
            value={header.name}
            onChange={(event) => onHeader({ ...header, name: event.currentTarget.value })}
          />
          <PasswordInput
            label="Value"
            description="Sent only to this address, and stored sealed with the server."
            placeholder="Bearer …"
            flex="2 1 14rem"
            value={header.value}
            autoComplete="off"
            onChange={(event) => onHeader({ ...header, value: event.currentTarget.value })}
          />
        </Group>
      )}
    </>
  );
}
