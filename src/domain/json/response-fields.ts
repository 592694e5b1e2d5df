import { plainFailure } from '../../errors.ts';
import { copyCompact, JsonCursor } from './json-cursor.ts';
import { NameTable } from './name-table.ts';
import type { DotPath } from './response-transform.ts';

/** The names to keep of an object, in the order in which they are written; `inner` is undefined for a whole value. */
export type FieldTree = { names: NameTable<Field>; count: number };
type Field = { order: number; inner: FieldTree | undefined };

type Draft = Map<string, Draft | undefined>;

/** Prepares the paths of `response_fields`. Keeping `a` includes all of `a.b`. */
export function fieldTree(paths: readonly DotPath[]): FieldTree {
  const whole = new Set(paths.map((path) => path.join('.')));
  const isInsideAnother = (path: DotPath) => path.some((_, i) => i > 0 && whole.has(path.slice(0, i).join('.')));
  const root: Draft = new Map();
  for (const path of paths.filter((wanted) => wanted.length > 0 && !isInsideAnother(wanted))) addPath(root, path);
  return treeOf(root);
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

function treeOf(draft: Draft): FieldTree {
  const names = new NameTable<Field>();
  for (const [order, [name, inner]] of [...draft].entries()) names.add(name, { order, inner: inner && treeOf(inner) });
  return { names, count: draft.size };
}

/**
 * Keeps the fields of an object, or of each item of an array. A single value inside, which has no fields, becomes `{}`;
 * null stays. The result is compact JSON with the digits and the spelling of the answer. Reads every byte once.
 * @throws ToolFailure transform when the answer or an item of it is a single value
 */
export function keepFields(json: Buffer, tree: FieldTree): Buffer {
  return new Keeper(json).run(tree);
}

const empty = Buffer.from('{}');
const startOfNull = 0x6e;
const noFields =
  'response_fields keep fields of an object or of each item of a list; the answer is a single value, or a list that holds one';

class Keeper {
  readonly #cursor: JsonCursor;
  /** A value of one byte may become `{}`, as in `[1,1]`; nothing else becomes longer than it was. */
  readonly #out: Buffer;
  #to = 0;
  /** How deep the cursor is inside fields. */
  #depth = 0;

  constructor(json: Buffer) {
    this.#cursor = new JsonCursor(json);
    this.#out = Buffer.allocUnsafe(Math.ceil(json.length * 1.5) + empty.length);
  }

  run(tree: FieldTree): Buffer {
    this.#cursor.skipSpace();
    this.#value(tree);
    return this.#out.subarray(0, this.#to);
  }

  #value(tree: FieldTree): void {
    if (this.#cursor.isAt('object')) this.#object(tree);
    else if (this.#cursor.isAt('array')) this.#array(tree);
    else this.#single();
  }

  #single(): void {
    const cursor = this.#cursor;
    if (cursor.bytes[cursor.at] === startOfNull) this.#whole();
    else if (this.#depth === 0) throw plainFailure('transform', noFields);
    else {
      cursor.skipValue();
      this.#to += empty.copy(this.#out, this.#to);
    }
  }

  #whole(): void {
    const from = this.#cursor.at;
    this.#cursor.skipValue();
    this.#to = copyCompact({ bytes: this.#cursor.bytes, from, end: this.#cursor.at }, this.#out, this.#to);
  }

  #array(tree: FieldTree): void {
    const cursor = this.#cursor;
    this.#write(0x5b);
    cursor.at++;
    let isFirst = true;
    while (cursor.next()) {
      if (!isFirst) this.#write(0x2c);
      isFirst = false;
      this.#value(tree);
    }
    this.#write(0x5d);
  }

  #object({ names, count }: FieldTree): void {
    const cursor = this.#cursor;
    const start = this.#to;
    let kept: Kept | undefined;
    this.#write(0x7b);
    cursor.at++;
    while (cursor.next()) {
      const from = cursor.at;
      cursor.skipString();
      const end = cursor.at;
      cursor.skipColon();
      const field = names.find(cursor.bytes, from, end);
      if (!field) {
        cursor.skipValue();
        continue;
      }
      if (kept) this.#write(0x2c);
      kept ??= new Kept(count);
      const segment = this.#to;
      this.#copy(from, end);
      this.#write(0x3a);
      this.#field(field);
      kept.add(field.order, segment, this.#to);
    }
    if (kept?.isOutOfOrder) this.#putInOrder(kept, start);
    this.#write(0x7d);
  }

  #field({ inner }: Field): void {
    if (inner) {
      this.#depth++;
      this.#value(inner);
      this.#depth--;
    } else this.#whole();
  }

  /** Writes the kept pairs of an object once more: in the order of their paths, and of repeated names the last. */
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

type Segment = { order: number; from: number; end: number };

/** Where the kept pairs of an object were written: in the order of the object until a pair is out of order, then by order. */
class Kept {
  isOutOfOrder = false;
  readonly #count: number;
  #last = -1;
  #segments: (Segment | undefined)[] = [];

  constructor(count: number) {
    this.#count = count;
  }

  add(order: number, from: number, end: number): void {
    if (order <= this.#last && !this.isOutOfOrder) this.#sort();
    this.#last = order;
    this.#segments[this.isOutOfOrder ? order : this.#segments.length] = { order, from, end };
  }

  #sort(): void {
    const sorted: (Segment | undefined)[] = new Array(this.#count);
    for (const segment of this.#segments) if (segment) sorted[segment.order] = segment;
    this.#segments = sorted;
    this.isOutOfOrder = true;
  }

  inOrder(): Segment[] {
    return this.#segments.filter((segment) => segment !== undefined);
  }
}
