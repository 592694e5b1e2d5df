import { Stack } from '@mantine/core';
import type { JsonObject } from '../../../api-types.ts';
import { parseJson } from '../../../exact-json.ts';
import { Collapsible } from '../../../ui/collapsible.tsx';
import { TwoColumns } from '../../../ui/two-columns.tsx';
import { asList, asText, isObject, withValue } from '../../config.ts';
import { declareField, type FieldDeclaration, Input } from '../fields.tsx';
import type { Edited } from '../model/editor-context.ts';
import type { Row } from '../named-rows.tsx';

export type ArgumentRow = Row<JsonObject>;

/** Conversion between a stored keyword and the value in its input. */
type Conversion = { shown: (stored: unknown) => unknown; stored: (input: unknown, type: unknown) => unknown };

const identity: Conversion = { shown: (stored) => stored, stored: (input) => input };

/** Converts a value of the argument's type to text and back. */
const typedValue: Conversion = {
  shown: (stored) => (typeof stored === 'string' || stored === undefined ? stored : JSON.stringify(stored)),
  stored: (input, type) => {
    if (type === 'string' || input === undefined) return input;
    try {
      return parseJson(asText(input));
    } catch {
      return input;
    }
  },
};

const typedValueList: Conversion = {
  shown: (stored) => asList(stored).map(typedValue.shown),
  stored: (input, type) => input && asList(input).map((one) => typedValue.stored(one, type)),
};

/** Converts between a reference to an argument and `:name`. Constants stay as they are. */
const constant: Conversion = {
  shown: (stored) => (isObject(stored) ? `:${asText(stored.argument)}` : stored),
  stored: (input) => (/^:/.test(asText(input)) ? { argument: asText(input).slice(1) } : input),
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

type ArgumentField = FieldDeclaration & { as?: Conversion };

const { text, list, choice, check } = declareField;
const apiNameHint = 'If it differs, such as filter[name].';
const partHint = 'For a multipart part. :name takes it from an argument.';

const generalFields: readonly ArgumentField[] = [
  { ...text('default', 'Default', 'Sent if the agent omits it.'), as: typedValue },
  { ...list('enum', 'Allowed values', 'Press Enter after each. Leave empty to allow all.'), as: typedValueList },
  choice('in', 'Location', 'Overrides the default for the method.', locations, {
    placeholder: 'Method default',
  }),
  text('format', 'Format', 'A hint such as date, uuid, or email.'),
  check('nullable', 'Nullable'),
  text('pattern', 'Pattern', 'Regular expression. Use ^ and $ to match the whole text.', { isMono: true }),
];

const encodingFields: readonly ArgumentField[] = [
  text('wire_name', 'API name', apiNameHint, { isMono: true }),
  choice('style', 'Serialization', 'Format of lists and objects.', styles, { placeholder: 'Tool default' }),
  { ...text('value', 'Constant', 'Sent in every call. Hidden from agents.'), as: typedValue },
  check('allow_slashes', 'Allow slashes in path'),
  check('allow_reserved', 'Allow : / ? @ and others in query'),
  { ...text('file_name', 'File name', partHint), as: constant },
  { ...text('media_type', 'Media type', 'Of a part or of the body, such as image/png.'), as: constant },
  { ...check('content', 'Base64-encoded file'), as: base64 },
];

const knownKeywords = new Set([
  'type',
  'description',
  'optional',
  ...[...generalFields, ...encodingFields].map(({ at }) => String(at)),
]);

/** Constraints of an argument, and its encoding in the request. */
export function ArgumentDetails({ row }: { row: ArgumentRow }) {
  const fields = (fieldList: readonly ArgumentField[]) =>
    fieldList.map(({ as = identity, at, ...what }) => {
      const name = String(at);
      const value = as.shown(row.value[name]);
      const set = (next: unknown) =>
        row.change(withValue(row.value, [name], as.stored(next, row.value.type)) as JsonObject);
      return (
        <Input key={name} edited={toEdited(row, value, set)} aria-label={formatFieldName(row, what.label)} {...what} />
      );
    });
  return (
    <Stack gap="xs" mt="sm">
      <TwoColumns>
        {fields(generalFields)}
        <OtherKeywords row={row} />
      </TwoColumns>
      <Collapsible label="Request encoding">
        <TwoColumns>{fields(encodingFields)}</TwoColumns>
      </Collapsible>
    </Stack>
  );
}

/** JSON input for the keywords without their own field, such as minimum or items. */
function OtherKeywords({ row }: { row: ArgumentRow }) {
  const entries = Object.entries(row.value);
  const otherKeywords = entries.filter(([name]) => !knownKeywords.has(name));
  const set = (next: unknown = {}) => {
    if (!isObject(next)) throw new Error('must be a JSON object');
    row.change({ ...Object.fromEntries(entries.filter(([name]) => knownKeywords.has(name))), ...next });
  };
  return (
    <Input
      kind="json"
      edited={toEdited(row, otherKeywords.length > 0 ? Object.fromEntries(otherKeywords) : undefined, set)}
      label="Other keywords"
      aria-label={formatFieldName(row, 'Other keywords')}
      text='As JSON, for example {"minimum": 1}.'
      minRows={1}
    />
  );
}

/** Adds the argument's name for screen readers, because several arguments may be open. */
function formatFieldName({ label }: ArgumentRow, field: string): string {
  return `${field} (${label})`;
}

/** Field state for one keyword of an argument. Its problems are shown at the argument's name. */
function toEdited({ field, name }: ArgumentRow, value: unknown, set: (next: unknown) => void): Edited {
  return { ...field, path: `${field.path}.${name}`, id: undefined, errors: [], warnings: [], value, set };
}
