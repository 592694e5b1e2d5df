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
const redirects = [{ value: 'follow', label: 'Follow up to 3' }];
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
  text('response_transform', 'Response path', 'Dot path, such as data.results.', {
    placeholder: '.',
    isMono: true,
  }),
  list('response_fields', 'Response fields', 'Fields to keep of the object or each item. Saves tokens.', byEnter),
];

const bodies = 'json, form, multipart, or the argument that is the body.';
const answerLimit = { placeholder: 'Server default' };
const noRedirects = { placeholder: 'Return an error with the target' };
const hint = (at: string, label: string) =>
  choice(['annotations', at], label, '', yesOrNo, { placeholder: 'Derived from method' });

const advanced = [
  text('title', 'Title', 'Name shown to people.'),
  number(
    'timeout_ms',
    'Timeout, ms',
    `Up to ${digits.format(bounds.timeoutMs.most)}.`,
    usually(bounds.timeoutMs.usual),
  ),
  text('body', 'Body', bodies, { placeholder: 'json', isMono: true }),
  choice('array_format', 'Array format', 'Format of lists in the query.', arrayFormats, { placeholder: 'a=1&a=2' }),
  number(
    'response_limit_bytes',
    'Max response bytes',
    'A larger response is an error.',
    usually(bounds.answerBytes.usual),
  ),
  number('max_answer_tokens', 'Max response tokens', 'Agents read the remainder with read_more.', answerLimit),
  list('response_headers', 'Response headers', 'Headers to return to the agent, such as Link or ETag.', byEnter),
  choice('redirects', 'Redirects', 'For GET downloads. Credentials are sent only to the API.', redirects, noRedirects),
  list('tags', 'Tags', 'Groups that agents can search by.', byEnter),
  check('pinned', 'Pinned', 'Always listed, even with tool search.'),
  hint('readOnlyHint', 'Read-only'),
  hint('destructiveHint', 'Destructive'),
  hint('idempotentHint', 'Idempotent'),
  hint('openWorldHint', 'Open world'),
];

const schemas = [
  json('body_template', 'Body template', 'JSON body in which ":name" is replaced by an argument.'),
  json('output_schema', 'Output schema', 'JSON Schema of the structured result.'),
];

/** Form for a tool and its HTTP request. */
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
          text="Sent with the request."
          choices={[...credentials, { value: 'none', label: 'No credential' }]}
          placeholder="Server default"
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
