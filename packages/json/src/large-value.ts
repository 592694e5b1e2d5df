/** A large value in an input. It stays JSON text, or raw text in UTF-8, until a thread or an operation reads it. */
export class LargeValue {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly isRawText: boolean;

  constructor(bytes: Uint8Array<ArrayBuffer>, isRawText: boolean) {
    this.#bytes = bytes;
    this.isRawText = isRawText;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  get json(): string {
    const text = Buffer.from(this.#bytes.buffer).toString('utf8');
    return this.isRawText ? JSON.stringify(text) : text;
  }
}

/** Returns the total bytes of the large values among the fields of an input. */
export function countLargeValueBytes(fields: object): number {
  let bytes = 0;
  for (const value of Object.values(fields)) if (value instanceof LargeValue) bytes += value.bytes.length;
  return bytes;
}

/**
 * Maximum depth below a configuration at which large values occur: its fields, and those of the tool that an input
 * refers to.
 */
const maxDepth = 3;

export function containsLargeValue(value: unknown, depth = maxDepth): boolean {
  if (value instanceof LargeValue) return true;
  if (depth === 0 || typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => containsLargeValue(inner, depth - 1));
}

/** Returns the JSON text of a value. Large values are included unchanged. */
export function toJsonWithLargeValues(value: unknown): string {
  if (value instanceof LargeValue) return value.json;
  if (!containsLargeValue(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(toJsonWithLargeValues).join(',')}]`;
  const members = Object.entries(value as object).filter(([, inner]) => inner !== undefined);
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${toJsonWithLargeValues(inner)}`).join(',')}}`;
}
