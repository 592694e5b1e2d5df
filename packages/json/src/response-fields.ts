import { anyKey, type DotPath, formatDotPath, toItemIndex } from '@toolhost/errors/dot-path';
import { recordableFailure, ToolFailure } from '@toolhost/errors/errors';
import { copyCompact, JsonCursor, NameTable } from './json-cursor.ts';
import { formatKeys, hasPath, maxKeysShown } from './response-transform.ts';

/**
 * Fields to keep: `names` in an object, `items` by index in a list, and `any` for every other key or item. With
 * `hasNames`, every item of a list is kept. `first` is the first path, for messages. In a field, `order` is its
 * position in the output, and `inner` is undefined if the whole value is kept.
 */
export type FieldTree = {
  names: NameTable<Field>;
  items: ReadonlyMap<number, Field>;
  hasNames: boolean;
  any: Field | undefined;
  first: DotPath;
};
type Field = { name: string; order: number; inner: FieldTree | undefined };

type Draft = Map<string, Draft | undefined>;

/** Prepares the paths of `response_fields`. Keeping `a` includes all of `a.b`. */
export function buildFieldTree(paths: readonly DotPath[]): FieldTree {
  const keptPaths = new Set(paths.map(formatDotPath));
  const isCoveredByAnother = (path: DotPath) =>
    path.some((_, i) => i > 0 && keptPaths.has(formatDotPath(path.slice(0, i))));
  const root: Draft = new Map();
  for (const path of paths.filter((candidate) => candidate.length > 0 && !isCoveredByAnother(candidate)))
    addPath(root, path);
  return toFieldTree(root, { fields: 0 });
}

function addPath(root: Draft, path: DotPath): void {
  let draft = root;
  for (const name of path.slice(0, -1)) {
    const inner = draft.get(name) ?? new Map();
    draft.set(name, inner);
    draft = inner;
  }
  const lastName = path.at(-1) as string;
  if (!draft.has(lastName)) draft.set(lastName, undefined);
}

function toFieldTree(draft: Draft, counter: { fields: number }): FieldTree {
  const names = new NameTable<Field>();
  const items = new Map<number, Field>();
  let any: Field | undefined;
  let first: DotPath | undefined;
  for (const [name, inner] of draft) {
    const field = { name, order: counter.fields++, inner: inner && toFieldTree(inner, counter) };
    names.add(name, field);
    first ??= [name, ...(field.inner?.first ?? [])];
    if (name === anyKey) any = field;
    const index = toItemIndex(name);
    if (index !== undefined) items.set(index, field);
  }
  return { names, items, hasNames: items.size < draft.size, any, first: first ?? [] };
}

/** Finds the field for a key that contains dots and appears unescaped in a path. */
function findDottedField(tree: FieldTree, key: string): Field | undefined {
  let inner: FieldTree | undefined = tree;
  let field: Field | undefined;
  for (const name of key.split('.')) {
    const quoted = Buffer.from(JSON.stringify(name));
    field = inner?.names.find(quoted, 0, quoted.length);
    if (!field) return undefined;
    inner = field.inner;
  }
  return field;
}

/**
 * Keeps the selected fields of an object, or of each item of an array. A nested single value, which has no fields,
 * becomes `{}`, but null stays. Returns compact JSON with the digits and spelling of the response. Reads each byte
 * once.
 * @throws ToolFailure transform if the response or an item of it is a single value, or if it is not empty but has none
 * of the fields: an empty result would look like a response without data
 */
export function selectFields(json: Buffer, tree: FieldTree): Buffer {
  return new FieldSelector(json).run(tree);
}

const emptyObject = Buffer.from('{}');
const dot = 0x2e;
const nullFirstByte = 0x6e;
const noFieldsMessage =
  'response_fields selects fields of an object or of each item of a list, but the response is a single value or a list that contains one';

class FieldSelector {
  readonly #cursor: JsonCursor;
  /** Output buffer. A value of one byte may become `{}`, as in `[1,1]`; nothing else gets longer. */
  readonly #output: Buffer;
  #outputEnd = 0;
  /** Names of the fields that contain the cursor. */
  readonly #path: string[] = [];
  /** True once a field was kept, or could not be kept because its container is empty or null. */
  #hasMatch = false;
  #deepestMiss: Miss | undefined;

  constructor(json: Buffer) {
    this.#cursor = new JsonCursor(json);
    this.#output = Buffer.allocUnsafe(Math.ceil(json.length * 1.5) + emptyObject.length);
  }

  run(tree: FieldTree): Buffer {
    this.#cursor.skipSpace();
    this.#visitValue(tree);
    if (!this.#hasMatch && this.#deepestMiss) throw this.#createMissFailure(this.#deepestMiss);
    return this.#output.subarray(0, this.#outputEnd);
  }

  #createMissFailure({ at, path, tree }: Miss): ToolFailure {
    const location = path.length === 0 ? 'the response' : `"${formatDotPath(path)}"`;
    const summary = `response_fields "${formatDotPath([...path, ...tree.first])}" does not exist in the response`;
    const failWith = (found: string) =>
      new ToolFailure('transform', `${summary}: ${location} has ${found}`, [], summary);
    if (at === undefined) return failWith(formatKeys({ keys: undefined, entries: -1 }));
    const cursor = new JsonCursor(this.#cursor.bytes, at + 1);
    const keys: string[] = [];
    let entries = 0;
    let isMap = false;
    while (cursor.next()) {
      const from = cursor.position;
      cursor.skipString();
      if (++entries <= maxKeysShown) keys.push(cursor.readName(from, cursor.position));
      cursor.skipColon();
      if (entries === 1) isMap = hasPath(cursor.bytes.subarray(cursor.position), tree.first);
      cursor.skipValue();
    }
    const hint = isMap ? `; * matches any key: "${formatDotPath([...path, anyKey, ...tree.first])}"` : '';
    return failWith(formatKeys({ keys, entries }) + hint);
  }

  #visitValue(tree: FieldTree): void {
    if (this.#cursor.isAt('object')) this.#visitObject(tree);
    else if (this.#cursor.isAt('array')) this.#visitArray(tree);
    else this.#visitScalar(tree);
  }

  #visitScalar(tree: FieldTree): void {
    const cursor = this.#cursor;
    if (cursor.bytes[cursor.position] === nullFirstByte) this.#copyValue();
    else if (this.#path.length === 0) throw recordableFailure('transform', noFieldsMessage);
    else {
      cursor.skipValue();
      this.#recordMiss(undefined, tree);
      this.#outputEnd += emptyObject.copy(this.#output, this.#outputEnd);
    }
  }

  #copyValue(): void {
    this.#hasMatch = true;
    const from = this.#cursor.position;
    this.#cursor.skipValue();
    this.#outputEnd = copyCompact(
      { bytes: this.#cursor.bytes, from, end: this.#cursor.position },
      this.#output,
      this.#outputEnd,
    );
  }

  #visitArray(tree: FieldTree): void {
    const cursor = this.#cursor;
    this.#write(0x5b);
    cursor.position++;
    const start = this.#outputEnd;
    let index = 0;
    for (; cursor.next(); index++) {
      const item = tree.items.get(index) ?? tree.any;
      if (!item && !tree.hasNames) {
        cursor.skipValue();
        continue;
      }
      if (this.#outputEnd > start) this.#write(0x2c);
      // An item that is named by its index keeps the fields of its own paths.
      if (item) this.#visitField(item);
      else this.#visitValue(tree);
    }
    // A list may have fewer items than a path names.
    if (index === 0 || !tree.hasNames) this.#hasMatch = true;
    this.#write(0x5d);
  }

  #visitObject(tree: FieldTree): void {
    const cursor = this.#cursor;
    const start = this.#outputEnd;
    const openingIndex = cursor.position;
    let keptPairs: KeptPairs | undefined;
    let isEmpty = true;
    this.#write(0x7b);
    cursor.position++;
    while (cursor.next()) {
      isEmpty = false;
      const from = cursor.position;
      cursor.skipString();
      const end = cursor.position;
      cursor.skipColon();
      const field = tree.names.find(cursor.bytes, from, end) ?? this.#findDotted(tree, from, end) ?? tree.any;
      if (!field) {
        cursor.skipValue();
        continue;
      }
      if (keptPairs) this.#write(0x2c);
      keptPairs ??= new KeptPairs();
      const pairStart = this.#outputEnd;
      this.#copy(from, end);
      this.#write(0x3a);
      this.#visitField(field);
      keptPairs.add({ order: field.order, from: pairStart, end: this.#outputEnd, isAny: field === tree.any });
    }
    if (keptPairs?.isUnordered) this.#reorder(keptPairs, start);
    if (isEmpty) this.#hasMatch = true;
    else if (!keptPairs) this.#recordMiss(openingIndex, tree);
    this.#write(0x7d);
  }

  #recordMiss(at: number | undefined, tree: FieldTree): void {
    if (!this.#hasMatch && this.#path.length > (this.#deepestMiss?.path.length ?? -1))
      this.#deepestMiss = { at, path: [...this.#path], tree };
  }

  #findDotted(tree: FieldTree, from: number, end: number): Field | undefined {
    const hasDot = this.#cursor.bytes.subarray(from, end).includes(dot);
    return hasDot ? findDottedField(tree, this.#cursor.readName(from, end)) : undefined;
  }

  #visitField({ name, inner }: Field): void {
    if (inner) {
      this.#path.push(name);
      this.#visitValue(inner);
      this.#path.pop();
    } else this.#copyValue();
  }

  /** Rewrites the retained pairs of an object in the order of their paths, using the last pair of repeated names. */
  #reorder(keptPairs: KeptPairs, start: number): void {
    const unordered = Buffer.from(this.#output.subarray(start, this.#outputEnd));
    this.#outputEnd = start + 1;
    for (const { from, end } of keptPairs.getOrdered()) {
      if (this.#outputEnd > start + 1) this.#write(0x2c);
      this.#outputEnd += unordered.copy(this.#output, this.#outputEnd, from - start, end - start);
    }
  }

  #write(byte: number): void {
    this.#output[this.#outputEnd++] = byte;
  }

  #copy(from: number, end: number): void {
    this.#outputEnd += this.#cursor.bytes.copy(this.#output, this.#outputEnd, from, end);
  }
}

/** The first of the deepest values that have none of the fields; `at` is undefined for a single value. */
type Miss = { at: number | undefined; path: DotPath; tree: FieldTree };

/** Position of a written pair. With `isAny`, other pairs have the same order. */
type PairRange = { order: number; from: number; end: number; isAny: boolean };

/** Positions of the retained pairs of an object, in the object's order. */
class KeptPairs {
  isUnordered = false;
  #lastOrder = -1;
  readonly #pairs: PairRange[] = [];

  add(segment: PairRange): void {
    const { order, isAny } = segment;
    this.isUnordered ||= isAny ? order < this.#lastOrder : order <= this.#lastOrder;
    this.#lastOrder = order;
    this.#pairs.push(segment);
  }

  /** Returns the pairs in the order of their paths, using the last pair of repeated names. */
  getOrdered(): PairRange[] {
    const lastByKey = new Map(this.#pairs.map((segment) => [segment.isAny ? -segment.from : segment.order, segment]));
    return [...lastByKey.values()].toSorted((a, b) => a.order - b.order);
  }
}
