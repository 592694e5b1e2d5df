import { isRawNumber } from '../json.ts';
import { capFields, type FieldStats, isPathSegment } from './field-statistics.ts';

/** Maximum number of distinct fields of one response that are measured. */
const maxMeasuredFields = 5000;
const maxDepth = 12;
/** Maximum length of a field's name, and of a value that is remembered, in bytes. */
const maxNameLength = 100;
const maxConstantLength = 60;

type FieldNode = Omit<FieldStats, 'fields' | 'always' | 'isPartial'> & {
  isPartial: boolean;
  /** JSON text of the value. Undefined once values differ or one is long. */
  always: string | undefined;
  children: Map<string, FieldNode>;
};

/** Measures the fields of a response, a value as `parseJson` returns it. */
export function measureFields(response: unknown): FieldStats {
  const root = createNode('');
  root.bytes = measureValue(response, root, 0, { fields: 0 });
  root.times = 1;
  return capFields(toFieldStats(root));
}

/** Adds a value to the statistics of its field. Returns the length of the value as compact JSON, in bytes. */
function measureValue(value: unknown, node: FieldNode, depth: number, counter: { fields: number }): number {
  const isContainer = typeof value === 'object' && value !== null && !isRawNumber(value);
  if (isContainer && depth < maxDepth) {
    return Array.isArray(value) ? measureList(value, node, depth, counter) : measureObject(value, node, depth, counter);
  }
  // Fields cannot be selected from a response that is a single value or a list that contains one.
  if ((isContainer && !Array.isArray(value)) || (node.name === '' && value !== null)) node.isPartial = true;
  // A single value is replaced with an empty object.
  node.around += value === null ? 4 : 2;
  return getJsonBytes(value);
}

function measureList(list: readonly unknown[], node: FieldNode, depth: number, counter: { fields: number }): number {
  const overhead = 2 + Math.max(0, list.length - 1);
  node.around += overhead;
  return list.reduce<number>((sum, item) => sum + measureValue(item, node, depth + 1, counter), overhead);
}

function measureObject(object: object, node: FieldNode, depth: number, counter: { fields: number }): number {
  node.objects++;
  const entries = Object.entries(object) as [string, unknown][];
  let bytes = 2 + Math.max(0, entries.length - 1);
  for (const [name, value] of entries) {
    const nameBytes = getJsonBytes(name) + 1;
    const field = nameBytes <= maxNameLength ? getOrAddField(node, name, counter) : undefined;
    if (!field) node.isPartial = true;
    const valueBytes = field ? measureValue(value, field, depth + 1, counter) : getJsonBytes(value);
    bytes += nameBytes + valueBytes;
    if (!field) continue;
    field.bytes += nameBytes + valueBytes;
    recordValue(field, value, valueBytes);
  }
  return bytes;
}

function getOrAddField(node: FieldNode, name: string, counter: { fields: number }): FieldNode | undefined {
  const existing = node.children.get(name);
  if (existing || counter.fields >= maxMeasuredFields || !isPathSegment(name)) return existing;
  counter.fields++;
  const field = createNode(name);
  node.children.set(name, field);
  return field;
}

function createNode(name: string): FieldNode {
  const zeroCounts = { times: 0, bytes: 0, objects: 0, around: 0, empty: 0, urls: 0 };
  return { name, ...zeroCounts, isPartial: false, always: undefined, children: new Map() };
}

function getJsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

const emptyValues = new Set(['null', '""', '[]', '{}']);

function recordValue(field: FieldNode, value: unknown, bytes: number): void {
  const text = bytes <= maxConstantLength ? JSON.stringify(value) : undefined;
  if (field.times === 0) field.always = text;
  else if (field.always !== text) field.always = undefined;
  field.times++;
  if (text !== undefined && emptyValues.has(text)) field.empty++;
  else if (typeof value === 'string' && /^https?:\/\//i.test(value)) field.urls++;
}

function toFieldStats({ children, always, isPartial, ...counts }: FieldNode): FieldStats {
  const fields = [...children.values()].map(toFieldStats);
  return { ...counts, ...(always !== undefined && { always }), ...(isPartial && { isPartial: true as const }), fields };
}
