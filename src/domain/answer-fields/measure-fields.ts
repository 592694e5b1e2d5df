import { JsonCursor } from '../json/json-cursor.ts';
import { boundFields, type FieldUse, isPathName } from './field-use.ts';

/** Most fields of one answer that are told apart while it is measured. */
const mostMeasured = 5000;
const deepest = 12;
const longestName = 100;
/** Longest value that is remembered, in bytes. */
const longestAlways = 60;
const startOfNull = 0x6e;

/**
 * Measures the fields of an answer, which must be compact JSON. Reads every byte a few times at most, and makes no
 * values of it.
 */
export function measureFields(json: Buffer): FieldUse {
  return new Measure(json).run();
}

type Node = Omit<FieldUse, 'fields' | 'always' | 'isPartial'> & {
  isPartial: boolean;
  /** Undefined as soon as values differ, or one is long. */
  always: string | undefined;
  /** By the name as it is spelled. */
  inner: Map<string, Node | undefined>;
};

class Measure {
  readonly #cursor: JsonCursor;
  #fields = 0;

  constructor(json: Buffer) {
    this.#cursor = new JsonCursor(json);
  }

  run(): FieldUse {
    const root = nodeOf('');
    const start = this.#cursor.at;
    this.#value(root, 0);
    root.times = 1;
    root.bytes = this.#cursor.at - start;
    return boundFields(fieldOf(root));
  }

  #value(node: Node, depth: number): void {
    const cursor = this.#cursor;
    const from = cursor.at;
    if (depth < deepest && cursor.isAt('object')) this.#object(node, depth);
    else if (depth < deepest && cursor.isAt('array')) this.#array(node, depth);
    else {
      const isNull = cursor.bytes[from] === startOfNull;
      // Fields cannot be kept of an answer that is a single value or a list with one.
      if (cursor.isAt('object') || (node.name === '' && !isNull)) node.isPartial = true;
      cursor.skipValue();
      // In place of a single value, an empty object is written.
      node.around += isNull ? 4 : 2;
    }
  }

  #array(node: Node, depth: number): void {
    const cursor = this.#cursor;
    node.around += 2;
    cursor.at++;
    for (let items = 0; cursor.next(); items++) {
      if (items > 0) node.around++;
      this.#value(node, depth + 1);
    }
  }

  #object(node: Node, depth: number): void {
    const cursor = this.#cursor;
    node.objects++;
    cursor.at++;
    while (cursor.next()) {
      const from = cursor.at;
      cursor.skipString();
      const end = cursor.at;
      cursor.skipColon();
      const field = this.#field(node, from, end);
      if (!field) {
        node.isPartial = true;
        cursor.skipValue();
        continue;
      }
      const start = cursor.at;
      this.#value(field, depth + 1);
      noteValue(field, cursor.bytes, start, cursor.at);
      field.bytes += cursor.at - from;
    }
  }

  #field(node: Node, from: number, end: number): Node | undefined {
    const { bytes } = this.#cursor;
    if (end - from > longestName) return undefined;
    const spelled = bytes.toString('latin1', from, end);
    if (node.inner.has(spelled)) return node.inner.get(spelled);
    const name = this.#cursor.nameAt(from, end);
    const field = this.#fields < mostMeasured && isPathName(name) ? nodeOf(name) : undefined;
    if (field) this.#fields++;
    // Names without a field are not remembered without end.
    if (field || node.inner.size < mostMeasured) node.inner.set(spelled, field);
    return field;
  }
}

function nodeOf(name: string): Node {
  const none = { times: 0, bytes: 0, objects: 0, around: 0, empty: 0, urls: 0 };
  return { name, ...none, isPartial: false, always: undefined, inner: new Map() };
}

const emptyValues = new Set(['null', '""', '[]', '{}']);

function noteValue(field: Node, bytes: Buffer, from: number, end: number): void {
  const text = end - from <= longestAlways ? bytes.toString('utf8', from, end) : undefined;
  if (field.times === 0) field.always = text;
  else if (field.always !== text) field.always = undefined;
  field.times++;
  if (text !== undefined && emptyValues.has(text)) field.empty++;
  else if (isUrl(bytes, from)) field.urls++;
}

function isUrl(bytes: Buffer, from: number): boolean {
  return bytes[from] === 0x22 && /^https?:\/\//i.test(bytes.toString('latin1', from + 1, from + 9));
}

function fieldOf({ inner, always, isPartial, ...rest }: Node): FieldUse {
  const fields = [...inner.values()].flatMap((node) => (node ? [fieldOf(node)] : []));
  return { ...rest, ...(always !== undefined && { always }), ...(isPartial && { isPartial: true as const }), fields };
}
