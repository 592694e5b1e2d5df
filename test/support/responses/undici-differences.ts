import { isResponse } from './response-outcome.ts';

/** A response to which the HTTP client and undici react differently. */
export type ComparedResponse = {
  /** One character for each byte. */
  bytes: string;
  /** Outcomes as `formatOutcome` formats them. */
  ours: string;
  undici: string;
};

/** A difference that is meant. */
export type Difference = { why: string; appliesTo: (compared: ComparedResponse) => boolean };

/** Matches the interim responses at the beginning, up to a 100. */
const continuePattern = /^[\r\n]*(?:HTTP\/1\.[01] 1\d\d[\s\S]*?\r?\n\r?\n)*?HTTP\/1\.[01] 100\b/;
/** Number of bytes from which a head, or the bytes around a body, may be too long. */
const maxHeadBytes = 64 * 1024;

/** Matches the beginning of a head that is not one of HTTP/1. */
const otherProtocolPattern = /(?:^|\r\n\r\n)[\r\n]*(?!HTTP\/1\.[01] )[A-Z]+\/\d/;
/** Matches what no head may contain. */
const invalidHeadPattern = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?!\n)|(?:^|[^\r])\n/;

/** Returns the bytes up to the last empty line, which end with the head of the final response or later. */
function getHeads(bytes: string): string {
  return bytes.slice(0, bytes.lastIndexOf('\r\n\r\n') + 2);
}

const isStricter = ({ ours, undici }: ComparedResponse) => !isResponse(ours) && isResponse(undici);

/** All differences from undici, with their reasons. A stricter response reader adds rows. */
export const undiciDifferences: readonly Difference[] = [
  {
    why: 'A client must accept 100 Continue without having requested it (RFC 9110, 15.2). Undici refuses it.',
    appliesTo: ({ bytes, ours, undici }) => isResponse(ours) && !isResponse(undici) && continuePattern.test(bytes),
  },
  {
    why: 'Header lines, trailers, and chunk extensions have a limit of 64 KB, because each costs more than a body.',
    appliesTo: (compared) => isStricter(compared) && compared.bytes.length > maxHeadBytes,
  },
  {
    why: 'A response has at most 100 interim responses.',
    appliesTo: (compared) => isStricter(compared) && compared.bytes.split(/HTTP\/1\.1 1\d\d/).length > 101,
  },
  {
    why: 'Beyond 10,000 body chunks, the average length of a chunk must be 100 bytes.',
    appliesTo: (compared) => isStricter(compared) && compared.bytes.split('\r\n').length > 20_000,
  },
  {
    why: 'Only HTTP/1 is read: no other version, and no preface of another protocol.',
    appliesTo: (compared) => isStricter(compared) && otherProtocolPattern.test(compared.bytes),
  },
  {
    why: 'A head has no control characters and no line break but CRLF (RFC 9112, 2.2), in an interim response neither.',
    appliesTo: (compared) => isStricter(compared) && invalidHeadPattern.test(getHeads(compared.bytes)),
  },
  {
    why: 'The size of a chunk has at most 13 digits.',
    appliesTo: (compared) => isStricter(compared) && /\r\n[\da-f]{14}/i.test(compared.bytes),
  },
  {
    why: 'Spaces and tabs around a value do not belong to it (RFC 9110, 5.5). Undici keeps those after it.',
    appliesTo: ({ bytes }) => /[\t ]\r\n/.test(getHeads(bytes)),
  },
  {
    why: 'A trailer changes nothing about the body (RFC 9110, 6.5.1). Undici compares a length in it.',
    appliesTo: ({ bytes, ours, undici }) =>
      isResponse(ours) && !isResponse(undici) && /\r\n0+\r\n[\s\S]*content-length/i.test(bytes),
  },
  {
    why: 'The end of the connection that an interim response announces is that of the final one.',
    appliesTo: ({ bytes, ours, undici }) =>
      isResponse(ours) && !isResponse(undici) && /^HTTP\/1\.1 1\d\d[\s\S]*?connection: close/i.test(bytes),
  },
  {
    why: 'The client decodes a content coding, which undici leaves to its caller.',
    appliesTo: ({ bytes }) => /\r\ncontent-encoding:/i.test(bytes),
  },
];
