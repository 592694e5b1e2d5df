import { Stack } from '@mantine/core';
import type { JsonObject } from '../../../answers.ts';
import { parseJson } from '../../../exact-json.ts';
import { Folded } from '../../../ui/folded.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { isObject, listOf, textOf, withValue } from '../../config.ts';
import { type Declared, declared, Input } from '../fields.tsx';
import type { Edited } from '../model/editor-context.ts';
import type { Row } from '../named-rows.tsx';

export type ArgumentRow = Row<JsonObject>;

/** Conversion between a stored keyword and the value in its input. */
type Conversion = { shown: (stored: unknown) => unknown; stored: (input: unknown, type: unknown) => unknown };

const asItIs: Conversion = { shown: (stored) => stored, stored: (input) => input };

/** Converts a value of the argument's type to text and back. */
const typed: Conversion = {
  shown: (stored) => (typeof stored === 'string' || stored === undefined ? stored : JSON.stringify(stored)),
  stored: (input, type) => {
    if (type === 'string' || input === undefined) return input;
    try {
      return parseJson(textOf(input));
    } catch {
      return input;
    }
  },
};

const typedList: Conversion = {
  shown: (stored) => listOf(stored).map(typed.shown),
  stored: (input, type) => input && listOf(input).map((one) => typed.stored(one, type)),
};

/** Converts between a reference to an argument and `:name`. Constants stay as they are. */
const constant: Conversion = {
  shown: (stored) => (isObject(stored) ? `:${textOf(stored.argument)}` : stored),
  stored: (input) => (/^:/.test(textOf(input)) ? { argument: textOf(input).slice(1) } : input),
};

const base64: Conversion = { shown: (stored) => stored === 'base64', stored: (isOn) => (isOn ? 'base64' : undefined) };

const locations = [
  { value: 'path', label: 'Path' },
  { value: 'query', label: 'Query' },
  { value: 'header', label: 'Header' },
  { value: 'cookie', label: 'Cookie' },
  { value: 'body', label: 'Body' },
];

const styles = [
  { value: 'repeat', label: 'a=1&a=2' },
  { value: 'comma', label: 'a=1,2' },
  { value: 'brackets', label: 'a[]=1, a[b]=1' },
  { value: 'indices', label: 'a[0]=1, a[b][0]=1' },
  { value: 'deep', label: 'a[b]=1' },
  { value: 'pipe', label: 'a=1|2' },
  { value: 'space', label: 'a=1 2' },
  { value: 'json', label: 'JSON text' },
  { value: 'querystring', label: 'Entire query' },
];

type ArgumentField = Declared & { as?: Conversion };

const { text, list, choice, check } = declared;
const api = 'If it differs, such as filter[name].';
const part = 'For a multipart part. :name takes it from an argument.';

const general: readonly ArgumentField[] = [
  { ...text('default', 'Default', 'Sent if the agent omits it.'), as: typed },
  { ...list('enum', 'Allowed values', 'Press Enter after each. Leave empty to allow all.'), as: typedList },
  choice('in', 'Location', 'Overrides the default for the method.', locations, {
    placeholder: 'Method default',
  }),
  text('format', 'Format', 'A hint such as date, uuid, or email.'),
  check('nullable', 'Nullable'),
  text('pattern', 'Pattern', 'Regular expression. Use ^ and $ to match the whole text.', { isMono: true }),
];

const sending: readonly ArgumentField[] = [
  text('wire_name', 'API name', api, { isMono: true }),
  choice('style', 'Serialization', 'Format of lists and objects.', styles, { placeholder: 'Tool default' }),
  { ...text('value', 'Constant', 'Sent in every call. Hidden from agents.'), as: typed },
  check('allow_slashes', 'Allow slashes in path'),
  check('allow_reserved', 'Allow : / ? @ and others in query'),
  { ...text('file_name', 'File name', part), as: constant },
  { ...text('media_type', 'Media type', 'Of a part or of the body, such as image/png.'), as: constant },
  { ...check('content', 'Base64-encoded file'), as: base64 },
];

const own = new Set(['type', 'description', 'optional', ...[...general, ...sending].map(({ at }) => String(at))]);

/** Constraints of an argument, and its encoding in the request. */
export function ArgumentDetails({ row }: { row: ArgumentRow }) {
  const fields = (some: readonly ArgumentField[]) =>
    some.map(({ as = asItIs, at, ...what }) => {
      const name = String(at);
      const value = as.shown(row.value[name]);
      const set = (next: unknown) =>
        row.change(withValue(row.value, [name], as.stored(next, row.value.type)) as JsonObject);
      return <Input key={name} edited={editedIn(row, value, set)} aria-label={nameIn(row, what.label)} {...what} />;
    });
  return (
    <Stack gap="xs" mt="sm">
      <TwoColumns>
        {fields(general)}
        <Others row={row} />
      </TwoColumns>
      <Folded label="Request encoding">
        <TwoColumns>{fields(sending)}</TwoColumns>
      </Folded>
    </Stack>
  );
}

/** JSON input for the keywords without their own field, such as minimum or items. */
function Others({ row }: { row: ArgumentRow }) {
  const entries = Object.entries(row.value);
  const others = entries.filter(([name]) => !own.has(name));
  const set = (next: unknown = {}) => {
    if (!isObject(next)) throw new Error('must be a JSON object');
    row.change({ ...Object.fromEntries(entries.filter(([name]) => own.has(name))), ...next });
  };
  return (
    <Input
      kind="json"
      edited={editedIn(row, others.length > 0 ? Object.fromEntries(others) : undefined, set)}
      label="Other keywords"
      aria-label={nameIn(row, 'Other keywords')}
      text='As JSON, for example {"minimum": 1}.'
      minRows={1}
    />
  );
}

/** Adds the argument's name for screen readers, because several arguments may be open. */
function nameIn({ label }: ArgumentRow, field: string): string {
  return `${field} (${label})`;
}

/** Field state for one keyword of an argument. Its problems are shown at the argument's name. */
function editedIn({ field, name }: ArgumentRow, value: unknown, set: (next: unknown) => void): Edited {
  return { ...field, path: `${field.path}.${name}`, id: undefined, errors: [], warnings: [], value, set };
}
