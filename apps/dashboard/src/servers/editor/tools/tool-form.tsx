import { Grid, Stack } from '@mantine/core';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { getCredentialNames } from '../../config.ts';
import { allowedValues, bounds } from '../../declared.ts';
import { ArgumentsEditor } from '../arguments/arguments-editor.tsx';
import { declareField, Fields } from '../fields.tsx';
import { useValue } from '../model/editor-context.ts';
import { HeadersEditor } from '../named-rows.tsx';

const { text, long, number, list, choice, check, json } = declareField;
const methods = (allowedValues['tools.*.method'] ?? []).map((value) => ({ value, label: value }));
const getDefaultPlaceholder = (value: number) => ({ placeholder: value.toLocaleString('en') });
const required = { isRequired: true, isMono: true };
const enterHint = { placeholder: 'Press Enter after each' };
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

const textFields = [
  text('name', 'Tool name', '', { placeholder: 'list_projects', ...required }),
  long('description', 'Tool description', 'What it does and when to use it, for the model.', { isRequired: true }),
];
const method = choice('method', 'Method', '', methods, { isRequired: true });
const url = text('url', 'URL', '', { placeholder: 'https://api.example.com/tasks/:id', ...required });

const responseFields = [
  text('response_transform', 'Response path', 'Dot path, such as data.results.', {
    placeholder: '.',
    isMono: true,
  }),
  list('response_fields', 'Response fields', 'Agents get only these fields of an object or each item.', enterHint),
];

const bodyHint = 'json, form, multipart, or the argument that is the body.';
const serverDefault = { placeholder: 'Server default' };
const redirectHint = { placeholder: 'Return an error with the target' };
const createAnnotationField = (name: string, label: string) =>
  choice(['annotations', name], label, '', yesOrNo, { placeholder: 'Derived from method' });

const advancedFields = [
  text('title', 'Title', 'Name shown to people.'),
  number(
    'timeout_ms',
    'Timeout, ms',
    `Up to ${bounds.timeoutMs.max.toLocaleString('en')}.`,
    getDefaultPlaceholder(bounds.timeoutMs.default),
  ),
  text('body', 'Body', bodyHint, { placeholder: 'json', isMono: true }),
  choice('array_format', 'Array format', 'Format of lists in the query.', arrayFormats, { placeholder: 'a=1&a=2' }),
  number(
    'response_limit_bytes',
    'Max response bytes',
    'A larger response is an error.',
    getDefaultPlaceholder(bounds.responseBytes.default),
  ),
  number('max_response_tokens', 'Max response tokens', 'Agents read the remainder with read_more.', serverDefault),
  list('response_headers', 'Response headers', 'Headers to return to the agent, such as Link or ETag.', enterHint),
  choice('redirects', 'Redirects', 'For GET downloads. Credentials are sent only to the API.', redirects, redirectHint),
  list('tags', 'Tags', 'Groups that agents can search by.', enterHint),
  check('pinned', 'Pinned', 'Always listed, even with tool search.'),
  createAnnotationField('readOnlyHint', 'Read-only'),
  createAnnotationField('destructiveHint', 'Destructive'),
  createAnnotationField('idempotentHint', 'Idempotent'),
  createAnnotationField('openWorldHint', 'Open world'),
];

const schemaFields = [
  json('body_template', 'Body template', 'JSON body in which ":name" is replaced by an argument.'),
  json('output_schema', 'Output schema', 'JSON Schema of the structured result.'),
];

export function ToolForm({ index }: { index: number }) {
  const path = ['tools', index];
  const names = getCredentialNames({ credentials: useValue(['credentials']) });
  const credentials = [...names.map((value) => ({ value, label: value })), { value: 'none', label: 'No credential' }];
  const credential = choice('credential', 'Credential', 'Sent with the request.', credentials, serverDefault);
  return (
    <Stack gap="md">
      <Fields path={path} fields={textFields} />
      <Grid gap="sm" maw={640}>
        <Grid.Col span={{ base: 12, xs: 3 }}>
          <Fields path={path} fields={[method]} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 9 }}>
          <Fields path={path} fields={[url]} />
        </Grid.Col>
      </Grid>
      <ArgumentsEditor path={[...path, 'input_schema']} />
      <HeadersEditor path={[...path, 'headers']} />
      {names.length > 0 && <Fields path={path} fields={[credential]} />}
      <TwoColumns>
        <Fields path={path} fields={responseFields} />
      </TwoColumns>
      <Collapsible label="Advanced">
        <TwoColumns>
          <Fields path={path} fields={advancedFields} />
        </TwoColumns>
        <Fields path={path} fields={schemaFields} />
      </Collapsible>
    </Stack>
  );
}
