/** Names of JSON text, found by their bytes, because making a string of every name costs more than all the rest. */
export class NameTable<Entry> {
  readonly #byHash = new Map<number, One<Entry> | Many<Entry>>();

  add(name: string, entry: Entry): void {
    const bytes = Buffer.from(name);
    const hash = hashOf(bytes, 0, bytes.length);
    const others = this.#byHash.get(hash);
    if (others === undefined) this.#byHash.set(hash, { bytes, entry });
    else this.#byHash.set(hash, manyOf(others).set(bytes.toString('latin1'), entry));
  }

  /** The entry of the name whose quotes are at `from` and before `end`. */
  find(text: Buffer, from: number, end: number): Entry | undefined {
    let hash = 0;
    for (let at = from + 1; at < end - 1; at++) {
      const byte = text[at] as number;
      if (byte === 0x5c) return this.#findEscaped(text, from, end);
      hash = Math.imul(hash, 31) + byte;
    }
    return this.#lookUp(hash | 0, text, from + 1, end - 1);
  }

  #findEscaped(text: Buffer, from: number, end: number): Entry | undefined {
    const bytes = Buffer.from(JSON.parse(text.toString('utf8', from, end)) as string);
    return this.#lookUp(hashOf(bytes, 0, bytes.length), bytes, 0, bytes.length);
  }

  #lookUp(hash: number, text: Buffer, from: number, end: number): Entry | undefined {
    const found = this.#byHash.get(hash);
    if (found === undefined) return undefined;
    if (found instanceof Map) return found.get(text.toString('latin1', from, end));
    const { bytes, entry } = found;
    return bytes.length === end - from && bytes.compare(text, from, end) === 0 ? entry : undefined;
  }
}

/** The only name with its hash. */
type One<Entry> = { bytes: Buffer; entry: Entry };
/** Names that somebody has chosen to have one hash; those of strings differ in every process. */
type Many<Entry> = Map<string, Entry>;

function manyOf<Entry>(known: One<Entry> | Many<Entry>): Many<Entry> {
  return known instanceof Map ? known : new Map([[known.bytes.toString('latin1'), known.entry]]);
}

function hashOf(bytes: Buffer, from: number, end: number): number {
  let hash = 0;
  for (let at = from; at < end; at++) hash = Math.imul(hash, 31) + (bytes[at] as number);
  return hash | 0;
}
