import { AppError } from '../../errors.ts';
import type { MaybePromise } from '../work/maybe-promise.ts';
import { nextTurn } from '../work/next-turn.ts';
import { bodyLimits, exceedsLimits, shortLimits } from './body-limits.ts';
import { parseJson, parseJsonInTurns } from './json.ts';
import { closingQuote, isName } from './json-reader.ts';
import type { JsonScan } from './json-scan.ts';

/** Parses a body that was scanned, a long one in several turns. @throws AppError tooLarge in its promise */
export function parseScanned(body: Buffer, scan: JsonScan): MaybePromise<unknown> {
  const text = body.toString('utf8');
  if (!exceedsLimits(body.length, scan, shortLimits)) return parseJson(text);
  return exceedsLimits(body.length, scan, bodyLimits) ? parseLongJson(text) : parseJsonInTurns(text);
}

/**
 * Parses the text of a long body, which must be JSON.
 * A name that is used again costs next to nothing, so only different names count for the limit that other bodies have.
 * @throws AppError tooLarge
 */
export async function parseLongJson(text: string): Promise<unknown> {
  await nextTurn();
  const names = await countNames(text, bodyLimits.names);
  if (names > bodyLimits.names)
    throw new AppError('tooLarge', `the body holds more than ${bodyLimits.names} different names; send less at once`);
  return parseJsonInTurns(text);
}

/** Strings that are looked at in one turn of the event loop, some milliseconds. */
const stringsOfTurn = 20_000;

/** Number of different names in JSON text, as they are written; stops above `most`. */
async function countNames(text: string, most: number): Promise<number> {
  const names = new Set<string>();
  let strings = 0;
  for (let from = text.indexOf('"'); from >= 0 && names.size <= most; strings++) {
    const end = closingQuote(text, from + 1);
    if (isName(text, end + 1)) names.add(text.slice(from + 1, end));
    from = text.indexOf('"', end + 1);
    if (strings % stringsOfTurn === stringsOfTurn - 1) await nextTurn();
  }
  return names.size;
}
