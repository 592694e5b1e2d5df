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

/** Conversion between a stored keyword and the value in its input. `type` is the type of the argument. */
type Conversion = { toInput: (stored: unknown) => unknown; toStored: (input: unknown, type: unknown) => unknown };

const identity: Conversion = { toInput: (stored) => stored, toStored: (input) => input };

/** Converts a value of the argument's type to text and back. */
const typedValue: Conversion = {
  toInput: (stored) => (typeof stored === 'string' || stored === undefined ? stored : JSON.stringify(stored)),
  toStored: (input, type) => {
    if (type === 'string' || input === undefined) return input;
    try {
      return parseJson(asText(input));
    } catch {
      return input;
    }
  },
};

const typedValueList: Conversion = {
  toInput: (stored) => asList(stored).map(typedValue.toInput),
  toStored: (input, type) => input && asList(input).map((value) => typedValue.toStored(value, type)),
};

/** Converts between a reference to an argument and `:name`. Constants stay as they are. */
const constant: Conversion = {
  toInput: (stored) => (isObject(stored) ? `:${asText(stored.argument)}` : stored),
  toStored: (input) => (/^:/.test(asText(input)) ? { argument: asText(input).slice(1) } : input),
};

const base64: Conversion = {
  toInput: (stored) => stored === 'base64',
  toStored: (isOn) => (isOn ? 'base64' : undefined),
};

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

type ArgumentField = FieldDeclaration & { convert?: Conversion };

const { text, list, choice, check } = declareField;
const apiNameHint = 'If it differs, such as filter[name].';
const partHint = 'For a multipart part. :name takes it from an argument.';

const generalFields: readonly ArgumentField[] = [
  { ...text('default', 'Default', 'Sent if the agent omits it.'), convert: typedValue },
  { ...list('enum', 'Allowed values', 'Press Enter after each. Leave empty to allow all.'), convert: typedValueList },
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
  { ...text('value', 'Constant', 'Sent in every call. Hidden from agents.'), convert: typedValue },
  check('allow_slashes', 'Allow slashes in path'),
  check('allow_reserved', 'Allow : / ? @ and others in query'),
  { ...text('file_name', 'File name', partHint), convert: constant },
  { ...text('media_type', 'Media type', 'Of a part or of the body, such as image/png.'), convert: constant },
  { ...check('content', 'Base64-encoded file'), convert: base64 },
];

const knownKeywords = new Set([
  'type',
  'description',
  'optional',
  ...[...generalFields, ...encodingFields].map(({ subpath }) => String(subpath)),
]);

/** Constraints of an argument, and its encoding in the request. */
export function ArgumentDetails({ row }: { row: ArgumentRow }) {
  const renderFields = (fields: readonly ArgumentField[]) =>
    fields.map(({ convert = identity, subpath, ...field }) => {
      const name = String(subpath);
      const value = convert.toInput(row.value[name]);
      const set = (next: unknown) =>
        row.change(withValue(row.value, [name], convert.toStored(next, row.value.type)) as JsonObject);
      return (
        <Input key={name} edited={toEdited(row, value, set)} aria-label={formatName(row, field.label)} {...field} />
      );
    });
  return (
    <Stack gap="xs" mt="sm">
      <TwoColumns>
        {renderFields(generalFields)}
        <OtherKeywords row={row} />
      </TwoColumns>
      <Collapsible label="Request encoding">
        <TwoColumns>{renderFields(encodingFields)}</TwoColumns>
      </Collapsible>
    </Stack>
  );
}

/** Returns true for the keywords that the indented rows of an object or of a list's objects show. */
function isShownAsFields(name: string, { type, items }: JsonObject): boolean {
  if (type === 'object') return name === 'properties' || name === 'required';
  return name === 'items' && type === 'array' && isObject(items) && items.type === 'object';
}

/** JSON input for the keywords without their own field, such as minimum or items. */
function OtherKeywords({ row }: { row: ArgumentRow }) {
  const entries = Object.entries(row.value);
  const hasForm = (name: string) => knownKeywords.has(name) || isShownAsFields(name, row.value);
  const otherKeywords = entries.filter(([name]) => !hasForm(name));
  const set = (next: unknown = {}) => {
    if (!isObject(next)) throw new Error('must be a JSON object');
    row.change({ ...Object.fromEntries(entries.filter(([name]) => hasForm(name))), ...next });
  };
  return (
    <Input
      kind="json"
      edited={toEdited(row, otherKeywords.length > 0 ? Object.fromEntries(otherKeywords) : undefined, set)}
      label="Other keywords"
      aria-label={formatName(row, 'Other keywords')}
      text='As JSON, for example {"minimum": 1}.'
      minRows={1}
    />
  );
}

/** Formats the name of a field for screen readers, with the argument's name, because several arguments may be open. */
function formatName({ label }: ArgumentRow, field: string): string {
  return `${field} (${label})`;
}

/** Returns the field state of a keyword. Its problems are shown at the argument's name. */
export function toEdited({ field, name }: ArgumentRow, value: unknown, set: (next: unknown) => void): Edited {
  return { ...field, path: `${field.path}.${name}`, id: undefined, errors: [], warnings: [], value, set };
}
