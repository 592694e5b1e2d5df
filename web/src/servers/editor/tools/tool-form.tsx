import { Grid, Stack } from '@mantine/core';
import { Folded } from '../../../ui/folded.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { namedCredentials } from '../../config.ts';
import { bounds, values } from '../../declared.ts';
import { ArgumentsEditor } from '../arguments/arguments-editor.tsx';
import { ChoiceField, LongTextField, TextField } from '../config-fields.tsx';
import { type DeclaredField, DeclaredFields } from '../declared-fields.tsx';
import { useValue } from '../model/editor-context.ts';
import { HeadersEditor } from '../server/headers-editor.tsx';

const methods = [...(values['tools.*.method'] ?? [])];
const digits = new Intl.NumberFormat('en');
const eachByEnter = 'Press Enter after each';
const arrayFormats = [
  { value: 'repeat', label: 'a=1&a=2' },
  { value: 'comma', label: 'a=1,2' },
  { value: 'brackets', label: 'a[]=1&a[]=2' },
];
const redirects = [{ value: 'follow', label: 'Are followed, up to 3' }];

const answerFields: readonly DeclaredField[] = [
  {
    kind: 'text',
    at: 'response_transform',
    label: 'Part of the answer',
    text: 'Dot path, for example data.results; . is everything.',
    placeholder: '.',
    isMono: true,
  },
  {
    kind: 'list',
    at: 'response_fields',
    label: 'Fields to keep',
    text: 'Of the object or of each item; saves tokens.',
    placeholder: eachByEnter,
  },
];

const advancedFields: readonly DeclaredField[] = [
  { kind: 'text', at: 'title', label: 'Title', text: 'Name shown to people.' },
  {
    kind: 'number',
    at: 'timeout_ms',
    label: 'Timeout in ms',
    text: `Up to ${digits.format(bounds.timeoutMs.most)}.`,
    placeholder: digits.format(bounds.timeoutMs.usual),
  },
  {
    kind: 'text',
    at: 'body',
    label: 'Body',
    text: 'json, form, multipart, or the one argument that is the body.',
    placeholder: 'json',
    isMono: true,
  },
  {
    kind: 'choice',
    at: 'array_format',
    label: 'Arrays in a query',
    text: 'How lists are written.',
    choices: arrayFormats,
    placeholder: 'a=1&a=2',
  },
  {
    kind: 'number',
    at: 'response_limit_bytes',
    label: 'Largest answer in bytes',
    placeholder: digits.format(bounds.answerBytes.usual),
  },
  {
    kind: 'number',
    at: 'max_answer_tokens',
    label: 'Most tokens of an answer',
    text: 'Agents read the rest with read_more.',
    placeholder: 'That of the server',
  },
  {
    kind: 'list',
    at: 'response_headers',
    label: 'Headers of the answer',
    text: 'Those that the agent gets, such as Link or ETag.',
    placeholder: eachByEnter,
  },
  {
    kind: 'choice',
    at: 'redirects',
    label: 'Redirects',
    text: 'For downloads by GET; credentials stay with the API.',
    choices: redirects,
    placeholder: 'Are errors that name the target',
  },
  { kind: 'list', at: 'tags', label: 'Tags', text: 'Groups by which agents search.', placeholder: eachByEnter },
  {
    kind: 'switch',
    at: 'pinned',
    label: 'Pinned',
    text: 'Listed although agents search for the others.',
    fallback: false,
  },
];

const hintFields: readonly DeclaredField[] = [
  { kind: 'hint', at: ['annotations', 'readOnlyHint'], label: 'Only reads' },
  { kind: 'hint', at: ['annotations', 'destructiveHint'], label: 'May destroy' },
  { kind: 'hint', at: ['annotations', 'idempotentHint'], label: 'Safe to repeat' },
  { kind: 'hint', at: ['annotations', 'openWorldHint'], label: 'Reaches the open world' },
];

const jsonFields: readonly DeclaredField[] = [
  {
    kind: 'json',
    at: 'body_template',
    label: 'Template of the body',
    text: 'JSON body in which ":name" is the value of an argument.',
  },
  { kind: 'json', at: 'output_schema', label: 'Output schema', text: 'JSON Schema of the structured answer.' },
];

/** The tool and the one request that it becomes. */
export function ToolForm({ index }: { index: number }) {
  const path = ['tools', index];
  const credentials = namedCredentials({ credentials: useValue(['credentials']) });
  const at = (field: string) => [...path, field];
  return (
    <Stack gap="md">
      <TextField path={at('name')} label="Tool name" isRequired isMono placeholder="list_projects" />
      <LongTextField
        path={at('description')}
        label="Tool description"
        isRequired
        text="What it does and when to use it, in natural language, for the model."
      />
      <Grid gap="sm">
        <Grid.Col span={{ base: 12, xs: 3 }}>
          <ChoiceField path={at('method')} label="Method" choices={methods} isRequired />
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 9 }}>
          <TextField path={at('url')} label="URL" isRequired isMono placeholder="https://api.example.com/tasks/:id" />
        </Grid.Col>
      </Grid>
      <ArgumentsEditor path={at('input_schema')} />
      <HeadersEditor path={at('headers')} />
      {credentials.length > 0 && (
        <ChoiceField
          path={at('credential')}
          label="Credential"
          text="What the request carries."
          choices={[...credentials, { value: 'none', label: 'No credential' }]}
          placeholder="That of the server"
        />
      )}
      <TwoColumns>
        <DeclaredFields path={path} fields={answerFields} />
      </TwoColumns>
      <Folded label="Advanced">
        <TwoColumns>
          <DeclaredFields path={path} fields={advancedFields} />
        </TwoColumns>
        <TwoColumns>
          <DeclaredFields path={path} fields={hintFields} />
        </TwoColumns>
        <DeclaredFields path={path} fields={jsonFields} />
      </Folded>
    </Stack>
  );
}
