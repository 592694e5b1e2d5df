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
const continuePattern = /^(?:HTTP\/1\.[01] 1\d\d[\s\S]*?\r?\n\r?\n)*?HTTP\/1\.[01] 100\b/;
/** Number of bytes from which a head, or the bytes around a body, may be too long. */
const maxHeadBytes = 64 * 1024;

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
    why: 'The client decodes a content coding, which undici leaves to its caller.',
    appliesTo: ({ bytes }) => /\r\ncontent-encoding:/i.test(bytes),
  },
];
