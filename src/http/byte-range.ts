/** The first and the last byte of a part of a body. */
export type ByteRange = { first: number; last: number };

const oneRange = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * The one range that a `Range` header asks for (RFC 9110, 14.2), of a body of `length` bytes, which is not empty. Undefined
 * for the whole body: without such a header, and for several ranges or another unit, which a server may ignore.
 */
export function byteRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | undefined {
  const [, from = '', to = ''] = oneRange.exec(header ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const size = Math.min(Number(to), length);
    return size === 0 ? 'unsatisfiable' : { first: length - size, last: length - 1 };
  }
  const first = Number(from);
  const last = to === '' ? length - 1 : Math.min(Number(to), length - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= length ? 'unsatisfiable' : { first, last };
}
