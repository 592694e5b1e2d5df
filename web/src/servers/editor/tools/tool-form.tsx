import { Grid, Stack } from '@mantine/core';
import { Folded } from '../../../ui/folded.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { namedCredentials } from '../../config.ts';
import { bounds, values } from '../../declared.ts';
import { ArgumentsEditor } from '../arguments/arguments-editor.tsx';
import { declared, Field, Fields } from '../fields.tsx';
import { useValue } from '../model/editor-context.ts';
import { HeadersEditor } from '../named-rows.tsx';

const { text, long, number, list, choice, check, json } = declared;
const methods = (values['tools.*.method'] ?? []).map((value) => ({ value, label: value }));
const digits = new Intl.NumberFormat('en');
const usually = (value: number) => ({ placeholder: digits.format(value) });
const required = { isRequired: true, isMono: true };
const byEnter = { placeholder: 'Press Enter after each' };
const arrayFormats = [
  { value: 'repeat', label: 'a=1&a=2' },
  { value: 'comma', label: 'a=1,2' },
  { value: 'brackets', label: 'a[]=1&a[]=2' },
];
const redirects = [{ value: 'follow', label: 'Are followed, up to 3' }];
const yesOrNo = [
  { value: true, label: 'Yes' },
  { value: false, label: 'No' },
];

const texts = [
  text('name', 'Tool name', '', { placeholder: 'list_projects', ...required }),
  long('description', 'Tool description', 'What it does and when to use it, for the model.', { isRequired: true }),
];
const method = choice('method', 'Method', '', methods, { isRequired: true });
const url = text('url', 'URL', '', { placeholder: 'https://api.example.com/tasks/:id', ...required });

const answers = [
  text('response_transform', 'Part of the answer', 'Dot path, such as data.results.', {
    placeholder: '.',
    isMono: true,
  }),
  list('response_fields', 'Fields to keep', 'Of the object or of each item; saves tokens.', byEnter),
];

const bodies = 'json, form, multipart, or the one argument that is the body.';
const answerLimit = { placeholder: 'That of the server' };
const noRedirects = { placeholder: 'Are errors that name the target' };
const hint = (at: string, label: string) =>
  choice(['annotations', at], label, '', yesOrNo, { placeholder: 'Derived from the method' });

const advanced = [
  text('title', 'Title', 'Name shown to people.'),
  number(
    'timeout_ms',
    'Timeout in ms',
    `Up to ${digits.format(bounds.timeoutMs.most)}.`,
    usually(bounds.timeoutMs.usual),
  ),
  text('body', 'Body', bodies, { placeholder: 'json', isMono: true }),
  choice('array_format', 'Arrays in a query', 'How lists are written.', arrayFormats, { placeholder: 'a=1&a=2' }),
  number(
    'response_limit_bytes',
    'Largest answer in bytes',
    'A larger one is an error.',
    usually(bounds.answerBytes.usual),
  ),
  number('max_answer_tokens', 'Most tokens of an answer', 'Agents read the rest with read_more.', answerLimit),
  list('response_headers', 'Headers of the answer', 'Those that the agent gets, such as Link or ETag.', byEnter),
  choice('redirects', 'Redirects', 'For downloads by GET; credentials stay with the API.', redirects, noRedirects),
  list('tags', 'Tags', 'Groups by which agents search.', byEnter),
  check('pinned', 'Pinned', 'Listed although agents search for the others.'),
  hint('readOnlyHint', 'Only reads'),
  hint('destructiveHint', 'May destroy'),
  hint('idempotentHint', 'Safe to repeat'),
  hint('openWorldHint', 'Reaches the open world'),
];

const schemas = [
  json('body_template', 'Template of the body', 'JSON body in which ":name" is the value of an argument.'),
  json('output_schema', 'Output schema', 'JSON Schema of the structured answer.'),
];

/** The tool and the one request that it becomes. */
export function ToolForm({ index }: { index: number }) {
  const path = ['tools', index];
  const names = namedCredentials({ credentials: useValue(['credentials']) });
  const credentials = names.map((value) => ({ value, label: value }));
  return (
    <Stack gap="md">
      <Fields path={path} of={texts} />
      <Grid gap="sm">
        <Grid.Col span={{ base: 12, xs: 3 }}>
          <Fields path={path} of={[method]} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 9 }}>
          <Fields path={path} of={[url]} />
        </Grid.Col>
      </Grid>
      <ArgumentsEditor path={[...path, 'input_schema']} />
      <HeadersEditor path={[...path, 'headers']} />
      {credentials.length > 0 && (
        <Field
          kind="choice"
          path={[...path, 'credential']}
          label="Credential"
          text="What the request carries."
          choices={[...credentials, { value: 'none', label: 'No credential' }]}
          placeholder="That of the server"
        />
      )}
      <TwoColumns>
        <Fields path={path} of={answers} />
      </TwoColumns>
      <Folded label="Advanced">
        <TwoColumns>
          <Fields path={path} of={advanced} />
        </TwoColumns>
        <Fields path={path} of={schemas} />
      </Folded>
    </Stack>
  );
}
