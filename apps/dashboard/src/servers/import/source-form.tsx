import { Box, Button, FileButton, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { decodeDocument } from '@toolhost/json/document-text';
import { type DragEvent, type FormEvent, type KeyboardEvent, type ReactNode, useState } from 'react';
import { type FormErrors, getFieldError } from '../../ui/actions/form-errors.ts';
import { Collapsible } from '../../ui/collapsible.tsx';
import { SecretInput } from '../../ui/secret-input.tsx';
import { Section } from '../../ui/section.tsx';
import { FormErrorAlert } from '../../ui/states/form-error-alert.tsx';

/** Source of the description: a URL with request headers, or text. */
export type Source = { url?: string; headers?: Record<string, string>; document?: string };

type Props = {
  title: string;
  text?: string;
  /** Initial URL. */
  url?: string | undefined;
  /** Source that was read, which the form shows in one line until it is changed. */
  readSource: Source | undefined;
  onRead: (source: Source) => void;
  isReading: boolean;
  formErrors: FormErrors;
  /** Additional fields. */
  children?: ReactNode;
};

const fileButtonProps = {
  variant: 'subtle',
  size: 'compact-sm',
  leftSection: <IconFileUpload size={14} />,
  children: 'Choose file',
} as const;

const maxBytes = 16 * 1024 * 1024;
const hostPattern = /^(?:localhost|\[[\da-f:]+\]|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d+)?(?:[/?#]\S*)?$/i;
const localPattern = /^(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[|[\w-]+:\d)/i;
const filePattern = /^(?:\.{0,2}[\\/]|~\/|[a-z]:\\)\S*$|^[^\s/:]+\.(?:json|ya?ml|har|http|bru|txt)$/i;

/** Returns the address in a text, with a scheme; undefined if the text is the description itself. */
function findAddress(text: string): string | undefined {
  if (/^[a-z][a-z\d+.-]*:\/\/\S*$/i.test(text)) return text;
  return hostPattern.test(text) ? `${localPattern.test(text) ? 'http' : 'https'}://${text}` : undefined;
}

function findProblem(text: string): string | undefined {
  if (text === '') return 'Enter an address, paste a description, or choose a file.';
  return filePattern.test(text) ? 'This is the name of a file on your computer. Press Choose file instead.' : undefined;
}

function findFileProblem({ name, size }: File): string | undefined {
  return size > maxBytes
    ? `${name} is larger than 16 MB. Enter its address, or import it with the command line.`
    : undefined;
}

/** Form for the source. Once it was read, it is a line with a button that shows the form again. */
export function SourceForm(props: Props) {
  const { title, readSource } = props;
  const [changedSource, setChangedSource] = useState<Source>();
  const isCollapsed = readSource !== undefined && readSource !== changedSource;
  const changeButton = (
    <Button variant="default" onClick={() => setChangedSource(readSource)}>
      Change
    </Button>
  );
  return (
    <>
      {isCollapsed && <Section title={title} text={readSource.url ?? 'Pasted text or a file'} actions={changeButton} />}
      <Box display={isCollapsed ? 'none' : 'block'}>
        <SourceFields {...props} />
      </Box>
    </>
  );
}

function SourceFields(props: Props) {
  const { onRead, isReading, formErrors } = props;
  const [text, setText] = useState(props.url ?? '');
  const [credential, setCredential] = useState({ header: 'Authorization', value: '' });
  const [problem, setProblem] = useState<string>();
  const [sentText, setSentText] = useState('');
  const address = findAddress(text.trim());
  const readFile = async (file: File | null | undefined) => {
    if (!file) return;
    setSentText(text);
    setProblem(findFileProblem(file));
    if (file.size <= maxBytes) onRead({ document: decodeDocument(new Uint8Array(await file.arrayBuffer())) });
  };
  const drop = useDrop((file) => void readFile(file));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = findProblem(text.trim());
    setProblem(found);
    if (found !== undefined) return;
    setSentText(address ?? text);
    if (address === undefined) return onRead({ document: text });
    setText(address);
    const { header, value } = credential;
    onRead({ url: address, ...(value !== '' && { headers: { [header.trim()]: value.trim() } }) });
  };
  const submitOnEnter = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === 'Enter' && !event.shiftKey && address !== undefined) submit(event);
  };
  // An answer to another text is no longer shown.
  const sourceError =
    text === sentText ? (getFieldError(formErrors, 'url') ?? getFieldError(formErrors, 'document')) : undefined;
  const localAdvice = /EGRESS_ALLOW/.test(sourceError ?? '')
    ? ` Or stop the service and run: toolhost import ${address} --serve`
    : '';
  const otherErrors = {
    ...formErrors,
    problems: formErrors.problems.filter(({ path }) => !/^(?:url|document|headers|for)/.test(path)),
  };
  return (
    <Section title={props.title} isTitleHidden={props.text === undefined} text={props.text}>
      <form onSubmit={submit} noValidate {...drop}>
        <Stack gap="sm">
          <FormErrorAlert formErrors={otherErrors} title="Description not read" />
          <Textarea
            label="Address or text"
            autoFocus={props.url === undefined}
            description="OpenAPI or Swagger, a Postman, Insomnia, or Bruno collection, an .http file, curl commands, fetch calls, or HAR."
            placeholder="https://api.example.com/openapi.json"
            className="th-mono"
            autosize
            minRows={1}
            maxRows={10}
            value={text}
            onChange={(event) => {
              setProblem(undefined);
              setText(event.currentTarget.value);
            }}
            onKeyDown={submitOnEnter}
            error={problem ?? (sourceError && sourceError + localAdvice)}
            spellCheck={false}
          />
          <Group>
            <FileButton onChange={(file) => void readFile(file)} accept=".json,.yaml,.yml,.har,.txt,.http,.bru">
              {(props) => <Button {...props} {...fileButtonProps} disabled={isReading} />}
            </FileButton>
          </Group>
          <CredentialFields
            credential={credential}
            onCredential={setCredential}
            error={getFieldError(formErrors, 'headers')}
          />
          {props.children}
          <Group>
            <Button type="submit" loading={isReading} variant={props.readSource ? 'default' : 'filled'}>
              Read description
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

type Credential = { header: string; value: string };
type CredentialProps = {
  credential: Credential;
  onCredential: (credential: Credential) => void;
  error: string | undefined;
};

/** Header that the address of the description requires. */
function CredentialFields({ credential, onCredential, error }: CredentialProps) {
  return (
    <Collapsible label="URL requires a credential">
      <Group gap="sm" align="flex-start">
        <TextInput
          label="Header"
          flex="1 1 10rem"
          value={credential.header}
          onChange={(event) => onCredential({ ...credential, header: event.currentTarget.value })}
        />
        <SecretInput
          label="Value"
          description="Sent only to this URL, and stored encrypted with the server."
          placeholder="Bearer …"
          flex="2 1 14rem"
          value={credential.value}
          onChange={(event) => onCredential({ ...credential, value: event.currentTarget.value })}
          error={error}
        />
      </Group>
    </Collapsible>
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
