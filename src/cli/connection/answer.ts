import { connectionReason } from '../../doctor/web.ts';
import { parseJson } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { AppError, messageOf } from '../../errors.ts';

/**
 * Limits of one answer, its bytes counted after decompression. A service gives a tenth of that at most: a large
 * configuration, the result of a call, or a page of versions.
 */
const answerLimits = { bytes: 64 * 1024 * 1024, depth: 128, values: 1_000_000 };

/** What all answers to one question of a person may take together. Each answer reduces `bytes`. */
export type Allowance = { bytes: number; signal: AbortSignal };

const mostBytesTogether = 256 * 1024 * 1024;
const longestTogetherMs = 600_000;

export function newAllowance(): Allowance {
  return { bytes: mostBytesTogether, signal: AbortSignal.timeout(longestTogetherMs) };
}

/**
 * The JSON value of an answer; undefined when it is not JSON. Its values are counted before any is made.
 * @throws AppError tooLarge; unavailable when the answer breaks off or takes too long
 */
export async function jsonOfAnswer(response: Response, url: string, allowance: Allowance): Promise<unknown> {
  const bytes = await bytesOf(response, url, allowance);
  const scan = scanJson(bytes, answerLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > answerLimits.depth)
    throw new AppError('tooLarge', `${url} answered with JSON that is nested deeper than ${answerLimits.depth} levels`);
  if (scan.elements > answerLimits.values || scan.names > answerLimits.values)
    throw new AppError('tooLarge', `${url} answered with more than ${answerLimits.values} values, which are not read`);
  return parseJson(bytes.toString('utf8'));
}

async function bytesOf(response: Response, url: string, allowance: Allowance): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let left = answerLimits.bytes;
  // Leaving the loop by an error also ends the answer.
  for await (const chunk of chunksOf(response, url)) {
    left -= chunk.length;
    allowance.bytes -= chunk.length;
    if (left < 0) throw tooLong(url, `one answer has more than ${megabytes(answerLimits.bytes)}`);
    if (allowance.bytes < 0) throw tooLong(url, `its answers have more than ${megabytes(mostBytesTogether)} together`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* chunksOf(response: Response, url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* response.body ?? [];
  } catch (error) {
    throw brokenOff(url, error);
  }
}

/** The error for an answer that did not come, or not to its end. */
export function brokenOff(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be reached: ${whyNoAnswer(error)}`);
}

/** Why an answer did not come, or not to its end. */
export function whyNoAnswer(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'it did not give a whole answer in time';
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return connectionReason(error) ?? (messageOf(cause) || 'no connection');
}

function tooLong(url: string, why: string): AppError {
  return new AppError('tooLarge', `${url} gives too much: ${why}, and no more is read`);
}

const megabytes = (bytes: number) => `${bytes / 1024 / 1024} MB`;
