/** A field of a body that is a text of megabytes, and how many characters that may have. */
export type LongTextField = { field: string; characters: number };

/** A text of megabytes that a thread has read out of a body, as UTF-8. What walks through an input finds nothing in it. */
export class LongText {
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }
}
