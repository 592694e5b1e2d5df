import { isRawNumber } from '../json/json.ts';
import { boundFields, type FieldUse, isPathName } from './field-use.ts';

/** Maximum number of distinct fields of one response that are measured. */
const mostMeasured = 5000;
const deepest = 12;
/** Maximum length of a field's name, and of a value that is remembered, in bytes. */
const longestName = 100;
const longestAlways = 60;

type Node = Omit<FieldUse, 'fields' | 'always' | 'isPartial'> & {
  isPartial: boolean;
  /** JSON text of the value. Undefined once values differ or one is long. */
  always: string | undefined;
  inner: Map<string, Node>;
};

/** Measures the fields of a response, a value as `parseJson` returns it. */
export function measureFields(answer: unknown): FieldUse {
  const root = nodeOf('');
  root.bytes = measure(answer, root, 0, { fields: 0 });
  root.times = 1;
  return boundFields(fieldOf(root));
}

/** Adds a value to the statistics of its field. Returns the length of the value as compact JSON, in bytes. */
function measure(value: unknown, node: Node, depth: number, found: { fields: number }): number {
  const isContainer = typeof value === 'object' && value !== null && !isRawNumber(value);
  if (isContainer && depth < deepest) {
    return Array.isArray(value) ? measureList(value, node, depth, found) : measureObject(value, node, depth, found);
  }
  // Fields cannot be selected from a response that is a single value or a list that contains one.
  if ((isContainer && !Array.isArray(value)) || (node.name === '' && value !== null)) node.isPartial = true;
  // A single value is replaced with an empty object.
  node.around += value === null ? 4 : 2;
  return bytesOf(value);
}

function measureList(list: readonly unknown[], node: Node, depth: number, found: { fields: number }): number {
  const around = 2 + Math.max(0, list.length - 1);
  node.around += around;
  return list.reduce<number>((sum, item) => sum + measure(item, node, depth + 1, found), around);
}

function measureObject(object: object, node: Node, depth: number, found: { fields: number }): number {
  node.objects++;
  const entries = Object.entries(object) as [string, unknown][];
  let bytes = 2 + Math.max(0, entries.length - 1);
  for (const [name, value] of entries) {
    const ofName = bytesOf(name) + 1;
    const field = ofName <= longestName ? fieldIn(node, name, found) : undefined;
    if (!field) node.isPartial = true;
    const ofValue = field ? measure(value, field, depth + 1, found) : bytesOf(value);
    bytes += ofName + ofValue;
    if (!field) continue;
    field.bytes += ofName + ofValue;
    noteValue(field, value, ofValue);
  }
  return bytes;
}

function fieldIn(node: Node, name: string, found: { fields: number }): Node | undefined {
  const known = node.inner.get(name);
  if (known || found.fields >= mostMeasured || !isPathName(name)) return known;
  found.fields++;
  const field = nodeOf(name);
  node.inner.set(name, field);
  return field;
}

function nodeOf(name: string): Node {
  const none = { times: 0, bytes: 0, objects: 0, around: 0, empty: 0, urls: 0 };
  return { name, ...none, isPartial: false, always: undefined, inner: new Map() };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

const emptyValues = new Set(['null', '""', '[]', '{}']);

function noteValue(field: Node, value: unknown, bytes: number): void {
  const text = bytes <= longestAlways ? JSON.stringify(value) : undefined;
  if (field.times === 0) field.always = text;
  else if (field.always !== text) field.always = undefined;
  field.times++;
  if (text !== undefined && emptyValues.has(text)) field.empty++;
  else if (typeof value === 'string' && /^https?:\/\//i.test(value)) field.urls++;
}

function fieldOf({ inner, always, isPartial, ...rest }: Node): FieldUse {
  const fields = [...inner.values()].map(fieldOf);
  return { ...rest, ...(always !== undefined && { always }), ...(isPartial && { isPartial: true as const }), fields };
}
