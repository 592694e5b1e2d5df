import { plainFailure, ToolFailure } from '../../errors.ts';
import { anyKey, type DotPath, dotPathText, indexOf } from './dot-path.ts';
import { copyCompact, JsonCursor, NameTable } from './json-cursor.ts';
import { hasPart, keysText, maxKeysShown } from './response-transform.ts';

/**
 * Fields to keep. `names` are the names to keep in an object, and `items` the indexes to keep in a list; `inner` is
 * undefined if the whole value is kept. `order` is the field's position in the output. With `hasNames`, every item of a
 * list is kept. `any` applies to every other key or item. `first` is the first path, for messages.
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
export function fieldTree(paths: readonly DotPath[]): FieldTree {
  const whole = new Set(paths.map(dotPathText));
  const isInsideAnother = (path: DotPath) => path.some((_, i) => i > 0 && whole.has(dotPathText(path.slice(0, i))));
  const root: Draft = new Map();
  for (const path of paths.filter((wanted) => wanted.length > 0 && !isInsideAnother(wanted))) addPath(root, path);
  return treeOf(root, { fields: 0 });
}

function addPath(root: Draft, path: DotPath): void {
  let draft = root;
  for (const name of path.slice(0, -1)) {
    const inner = draft.get(name) ?? new Map();
    draft.set(name, inner);
    draft = inner;
  }
  const last = path.at(-1) as string;
  if (!draft.has(last)) draft.set(last, undefined);
}

function treeOf(draft: Draft, counted: { fields: number }): FieldTree {
  const names = new NameTable<Field>();
  const items = new Map<number, Field>();
  let any: Field | undefined;
  let first: DotPath | undefined;
  for (const [name, inner] of draft) {
    const field = { name, order: counted.fields++, inner: inner && treeOf(inner, counted) };
    names.add(name, field);
    first ??= [name, ...(field.inner?.first ?? [])];
    if (name === anyKey) any = field;
    const index = indexOf(name);
    if (index !== undefined) items.set(index, field);
  }
  return { names, items, hasNames: items.size < draft.size, any, first: first ?? [] };
}

/** Finds the field for a key that contains dots and appears unescaped in a path. */
function dottedField(tree: FieldTree, key: string): Field | undefined {
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
 * becomes `{}`; null stays. The result is compact JSON with the digits and spelling of the response. Every byte is read
 * once.
 * @throws ToolFailure transform if the response or an item of it is a single value, or if it is not empty but has none
 * of the fields: an empty result would look like a response without data
 */
export function keepFields(json: Buffer, tree: FieldTree): Buffer {
  return new Keeper(json).run(tree);
}

const empty = Buffer.from('{}');
const dot = 0x2e;
const startOfNull = 0x6e;
const noFields =
  'response_fields selects fields of an object or of each item of a list, but the response is a single value or a list that contains one';

class Keeper {
  readonly #cursor: JsonCursor;
  /** Output buffer. A value of one byte may become `{}`, as in `[1,1]`; nothing else gets longer. */
  readonly #out: Buffer;
  #to = 0;
  /** Names of the fields that contain the cursor. */
  readonly #path: string[] = [];
  /** True once a field was kept, or could not be kept because its container is empty or null. */
  #isReached = false;
  #miss: Miss | undefined;

  constructor(json: Buffer) {
    this.#cursor = new JsonCursor(json);
    this.#out = Buffer.allocUnsafe(Math.ceil(json.length * 1.5) + empty.length);
  }

  run(tree: FieldTree): Buffer {
    this.#cursor.skipSpace();
    this.#value(tree);
    if (!this.#isReached && this.#miss) throw this.#noSuchField(this.#miss);
    return this.#out.subarray(0, this.#to);
  }

  #noSuchField({ at, path, tree }: Miss): ToolFailure {
    const place = path.length === 0 ? 'the response' : `"${dotPathText(path)}"`;
    const sentence = `response_fields "${dotPathText([...path, ...tree.first])}" does not exist in the response`;
    const has = (what: string) => new ToolFailure('transform', `${sentence}: ${place} has ${what}`, [], sentence);
    if (at === undefined) return has(keysText({ keys: undefined, entries: -1 }));
    const cursor = new JsonCursor(this.#cursor.bytes, at + 1);
    const keys: string[] = [];
    let entries = 0;
    let isMap = false;
    while (cursor.next()) {
      const from = cursor.at;
      cursor.skipString();
      if (++entries <= maxKeysShown) keys.push(cursor.nameAt(from, cursor.at));
      cursor.skipColon();
      if (entries === 1) isMap = hasPart(cursor.bytes.subarray(cursor.at), tree.first);
      cursor.skipValue();
    }
    const hint = isMap ? `; * matches any key: "${dotPathText([...path, anyKey, ...tree.first])}"` : '';
    return has(keysText({ keys, entries }) + hint);
  }

  #value(tree: FieldTree): void {
    if (this.#cursor.isAt('object')) this.#object(tree);
    else if (this.#cursor.isAt('array')) this.#array(tree);
    else this.#single(tree);
  }

  #single(tree: FieldTree): void {
    const cursor = this.#cursor;
    if (cursor.bytes[cursor.at] === startOfNull) this.#whole();
    else if (this.#path.length === 0) throw plainFailure('transform', noFields);
    else {
      cursor.skipValue();
      this.#missed(undefined, tree);
      this.#to += empty.copy(this.#out, this.#to);
    }
  }

  #whole(): void {
    this.#isReached = true;
    const from = this.#cursor.at;
    this.#cursor.skipValue();
    this.#to = copyCompact({ bytes: this.#cursor.bytes, from, end: this.#cursor.at }, this.#out, this.#to);
  }

  #array(tree: FieldTree): void {
    const cursor = this.#cursor;
    this.#write(0x5b);
    cursor.at++;
    const start = this.#to;
    let index = 0;
    for (; cursor.next(); index++) {
      const item = tree.items.get(index) ?? tree.any;
      if (!item && !tree.hasNames) {
        cursor.skipValue();
        continue;
      }
      if (this.#to > start) this.#write(0x2c);
      // An item that is named by its index keeps the fields of its own paths.
      if (item) this.#field(item);
      else this.#value(tree);
    }
    // A list may have fewer items than a path names.
    if (index === 0 || !tree.hasNames) this.#isReached = true;
    this.#write(0x5d);
  }

  #object(tree: FieldTree): void {
    const cursor = this.#cursor;
    const start = this.#to;
    const opening = cursor.at;
    let kept: Kept | undefined;
    let isEmpty = true;
    this.#write(0x7b);
    cursor.at++;
    while (cursor.next()) {
      isEmpty = false;
      const from = cursor.at;
      cursor.skipString();
      const end = cursor.at;
      cursor.skipColon();
      const field = tree.names.find(cursor.bytes, from, end) ?? this.#dotted(tree, from, end) ?? tree.any;
      if (!field) {
        cursor.skipValue();
        continue;
      }
      if (kept) this.#write(0x2c);
      kept ??= new Kept();
      const segment = this.#to;
      this.#copy(from, end);
      this.#write(0x3a);
      this.#field(field);
      kept.add({ order: field.order, from: segment, end: this.#to, isAny: field === tree.any });
    }
    if (kept?.isOutOfOrder) this.#putInOrder(kept, start);
    if (isEmpty) this.#isReached = true;
    else if (!kept) this.#missed(opening, tree);
    this.#write(0x7d);
  }

  #missed(at: number | undefined, tree: FieldTree): void {
    if (!this.#isReached && this.#path.length > (this.#miss?.path.length ?? -1))
      this.#miss = { at, path: [...this.#path], tree };
  }

  #dotted(tree: FieldTree, from: number, end: number): Field | undefined {
    const hasDot = this.#cursor.bytes.subarray(from, end).includes(dot);
    return hasDot ? dottedField(tree, this.#cursor.nameAt(from, end)) : undefined;
  }

  #field({ name, inner }: Field): void {
    if (inner) {
      this.#path.push(name);
      this.#value(inner);
      this.#path.pop();
    } else this.#whole();
  }

  /** Rewrites the retained pairs of an object in the order of their paths, using the last pair of repeated names. */
  #putInOrder(kept: Kept, start: number): void {
    const written = Buffer.from(this.#out.subarray(start, this.#to));
    this.#to = start + 1;
    for (const { from, end } of kept.inOrder()) {
      if (this.#to > start + 1) this.#write(0x2c);
      this.#to += written.copy(this.#out, this.#to, from - start, end - start);
    }
  }

  #write(byte: number): void {
    this.#out[this.#to++] = byte;
  }

  #copy(from: number, end: number): void {
    this.#to += this.#cursor.bytes.copy(this.#out, this.#to, from, end);
  }
}

/** The first of the deepest values that have none of the fields; `at` is undefined for a single value. */
type Miss = { at: number | undefined; path: DotPath; tree: FieldTree };

/** Position of a written pair. With `isAny`, other pairs have the same order. */
type Segment = { order: number; from: number; end: number; isAny: boolean };

/** Positions of the retained pairs of an object, in the object's order. */
class Kept {
  isOutOfOrder = false;
  #last = -1;
  readonly #segments: Segment[] = [];

  add(segment: Segment): void {
    const { order, isAny } = segment;
    this.isOutOfOrder ||= isAny ? order < this.#last : order <= this.#last;
    this.#last = order;
    this.#segments.push(segment);
  }

  /** Returns the pairs in the order of their paths, using the last pair of repeated names. */
  inOrder(): Segment[] {
    const last = new Map(this.#segments.map((segment) => [segment.isAny ? -segment.from : segment.order, segment]));
    return [...last.values()].toSorted((a, b) => a.order - b.order);
  }
}
