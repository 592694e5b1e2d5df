/** A large value in an input. It stays JSON text, or raw text in UTF-8, until a thread or an operation reads it. */
export class LongValue {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly isText: boolean;

  constructor(bytes: Uint8Array<ArrayBuffer>, isText: boolean) {
    this.#bytes = bytes;
    this.isText = isText;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  get json(): string {
    const text = Buffer.from(this.#bytes.buffer).toString('utf8');
    return this.isText ? JSON.stringify(text) : text;
  }
}

/** Returns the total bytes of the large values among the fields of an input. */
export function longBytesOf(fields: object): number {
  let bytes = 0;
  for (const value of Object.values(fields)) if (value instanceof LongValue) bytes += value.bytes.length;
  return bytes;
}

/**
 * Maximum depth below a configuration at which large values occur: its fields, and those of the tool that an input
 * refers to.
 */
const mostLevels = 3;

export function holdsLong(value: unknown, levels = mostLevels): boolean {
  if (value instanceof LongValue) return true;
  if (levels === 0 || typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => holdsLong(inner, levels - 1));
}

/** Returns the JSON text of a value. Large values are included unchanged. */
export function jsonWithLong(value: unknown): string {
  if (value instanceof LongValue) return value.json;
  if (!holdsLong(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(jsonWithLong).join(',')}]`;
  const members = Object.entries(value as object).filter(([, inner]) => inner !== undefined);
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${jsonWithLong(inner)}`).join(',')}}`;
}
