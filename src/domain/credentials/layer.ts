/** A text that is searched for credentials, as it is or without an encoding that it had. */
export type Layer = {
  /** Bytes of UTF-8, one character each. */
  raw: string;
  /** The same as `folded` writes it, to be compared. */
  text: string;
  /** Where each character begins and ends in the first layer; undefined in the first layer itself. */
  spans: { starts: Uint32Array; ends: Uint32Array } | undefined;
};

/** Case, the two alphabets of Base64 and the space of forms make no difference. The length stays. */
export function folded(text: string): string {
  return foldedRaw(Buffer.from(text).toString('latin1'));
}

function foldedRaw(raw: string): string {
  return raw.toLowerCase().replaceAll(/[ -]/g, '+').replaceAll('_', '/');
}

/** The same of one byte. */
const foldedBytes = Uint8Array.from({ length: 256 }, (_, byte) => foldedRaw(String.fromCharCode(byte)).charCodeAt(0));

export function firstLayer(text: string): Layer {
  const raw = Buffer.from(text).toString('latin1');
  return { raw, text: foldedRaw(raw), spans: undefined };
}

/** A layer that grows below another one. */
export class Below {
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #above: Layer['spans'];
  #length = 0;
  /** The first half of a surrogate pair that was added last. */
  #half: { point: number; from: number; end: number; length: number } | undefined;

  /** It gets at most so many bytes. */
  constructor(most: number, above: Layer['spans']) {
    this.#bytes = Buffer.allocUnsafe(most);
    this.#starts = new Uint32Array(most);
    this.#ends = new Uint32Array(most);
    this.#above = above;
  }

  get length(): number {
    return this.#length;
  }

  /** Adds a code point as UTF-8. Two escapes may be the halves of one, as in `\ud83d\ude00`. */
  put(point: number, from: number, end: number): number {
    if (point < 0x80) return this.add(point, from, end);
    const half = this.#half;
    if (half?.end === from && point >= 0xdc00 && point <= 0xdfff) {
      this.#length = half.length;
      const pair = String.fromCharCode(half.point, point);
      return this.addAll(Buffer.from(pair), half.from, end);
    }
    if (point >= 0xd800 && point <= 0xdbff) this.#half = { point, from, end, length: this.#length };
    const isPoint = point <= 0x10ffff;
    return this.addAll(Buffer.from(isPoint ? String.fromCodePoint(point) : '?'), from, end);
  }

  /** Adds bytes that stand together from `from` to `end` in the layer above, and gives `end`. */
  addAll(bytes: Uint8Array, from: number, end: number): number {
    for (const byte of bytes) this.add(byte, from, end);
    return end;
  }

  /** Adds one byte, which stands from `from` to `end` in the layer above, and gives `end`. */
  add(byte: number, from: number, end: number): number {
    const at = this.#length++;
    this.#bytes[at] = byte;
    this.#starts[at] = this.#above ? (this.#above.starts[from] as number) : from;
    this.#ends[at] = this.#above ? (this.#above.ends[end - 1] as number) : end;
    return end;
  }

  /** The layer; nothing can be added to it any more. */
  finish(): Layer {
    const length = this.#length;
    const spans = { starts: this.#starts.subarray(0, length), ends: this.#ends.subarray(0, length) };
    const raw = this.#bytes.toString('latin1', 0, length);
    for (let at = 0; at < length; at++) this.#bytes[at] = foldedBytes[this.#bytes[at] as number] as number;
    return { raw, text: this.#bytes.toString('latin1', 0, length), spans };
  }
}
