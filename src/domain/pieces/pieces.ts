/** A piece of a long answer, and a phrase that says which one it is, such as `items 43 to 90 of 380`. */
export type Piece = { text: string; about: string };

/** Pieces that are stored as one row: the JSON text of a list of pieces, and the number of the first one. */
export type Segment = { first: number; json: Uint8Array<ArrayBuffer> };

/** Characters of a segment; a single longer piece is a segment of its own. */
const segmentLength = 200_000;

/** Puts pieces, whose numbers begin with 1, into segments. */
export function segmentsOf(pieces: readonly Piece[]): Segment[] {
  const segments: Segment[] = [];
  let held: Piece[] = [];
  let length = 0;
  let first = 1;
  const close = () => {
    if (held.length === 0) return;
    segments.push({ first, json: new Uint8Array(Buffer.from(JSON.stringify(held))) });
    first += held.length;
    held = [];
    length = 0;
  };
  for (const piece of pieces) {
    if (length + piece.text.length > segmentLength) close();
    held.push(piece);
    length += piece.text.length + piece.about.length;
  }
  close();
  return segments;
}
