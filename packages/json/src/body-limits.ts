import { isUtf8 } from 'node:buffer';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { JsonCursor } from './json-cursor.ts';
import { type BodyLimits, getBodyProblem, type JsonScan, scanJson } from './json-scan.ts';

/**
 * Limits of a posted body. Creating a value takes 0.1 µs, a new name three times as long, and a body is read several
 * times.
 */
export const bodyLimits: BodyLimits = { bytes: 1024 * 1024, depth: 64, elements: 60_000, names: 30_000 };

/**
 * Limits of a body that may contain a whole configuration, from a credential that may store one. A thousand tools with
 * twenty described arguments each, like Stripe's, take 4.0 MiB, 110,000 elements, and 93,000 names.
 */
export const configurationLimits: BodyLimits = { bytes: 4 * 1024 * 1024, depth: 64, elements: 120_000, names: 100_000 };

/**
 * Size of the largest input that is parsed and checked on the event loop, which takes some milliseconds. A larger input
 * may be parsed on a thread.
 */
export const maxParsedOnLoop = { values: 1500, characters: 60_000 };

/** Limits of an input that is always parsed on the event loop. */
export const eventLoopLimits: BodyLimits = {
  ...bodyLimits,
  bytes: maxParsedOnLoop.characters,
  elements: maxParsedOnLoop.values,
  names: maxParsedOnLoop.values,
};

/** Checks that a body is a JSON object within limits, without parsing it. @throws AppError invalid, tooLarge */
export function checkBody(bytes: Buffer, limits: BodyLimits): JsonScan {
  // Decoding would replace invalid bytes with replacement characters, which would then be stored or sent.
  if (!isUtf8(bytes)) throw invalidInputError([{ path: '', message: 'the body is not UTF-8' }]);
  const scan = scanJson(bytes, limits.depth);
  if (!scan) throw invalidInputError([{ path: '', message: 'the body is not JSON' }]);
  const sizeProblem = getBodyProblem(scan, limits);
  if (sizeProblem) throw new AppError('tooLarge', sizeProblem);
  if (!isJsonObject(bytes)) throw invalidInputError([{ path: '', message: 'the body must be a JSON object' }]);
  return scan;
}

/** Returns true if JSON text is an object. */
function isJsonObject(bytes: Buffer): boolean {
  const cursor = new JsonCursor(bytes);
  cursor.skipSpace();
  return cursor.isAt('object');
}
