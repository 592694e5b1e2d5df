import type { JsonScan } from './json-scan.ts';

/** What a body may hold, in the units of `JsonScan`. */
export type BodyLimits = { bytes: number; depth: number; elements: number; names: number };

/**
 * Limits of a posted body. Making a value takes a tenth of a microsecond, a new name three times as long, and each is
 * read several times.
 */
export const bodyLimits: BodyLimits = { bytes: 1024 * 1024, depth: 64, elements: 60_000, names: 30_000 };

/**
 * Limits of a body that may hold a whole configuration, from a credential that may store one. A thousand tools with
 * twenty described arguments each, as those of Stripe have, take 4.0 MiB, 110,000 elements and 93,000 names.
 */
export const configurationLimits: BodyLimits = { bytes: 4 * 1024 * 1024, depth: 64, elements: 120_000, names: 100_000 };

/** Parsing and checking an input of this size takes some milliseconds; a larger one may be left to a thread. */
export const mostParsed = { values: 1500, characters: 60_000 };

/** Limits of an input that is always parsed on the event loop. */
export const shortLimits: BodyLimits = {
  ...bodyLimits,
  bytes: mostParsed.characters,
  elements: mostParsed.values,
  names: mostParsed.values,
};

/** Whether a body is larger than these limits allow; its depth does not count. */
export function exceedsLimits(bytes: number, { elements, names }: JsonScan, most: BodyLimits): boolean {
  return bytes > most.bytes || elements > most.elements || names > most.names;
}

/** The limit that a posted body exceeds, or undefined. */
export function bodyProblem({ depth, elements, names }: JsonScan, most: BodyLimits): string | undefined {
  if (depth > most.depth) return `nested deeper than ${most.depth} levels`;
  if (elements > most.elements) return `the body holds more than ${most.elements} elements; send less at once`;
  if (names > most.names) return `the body holds more than ${most.names} names; send less at once`;
  return undefined;
}
