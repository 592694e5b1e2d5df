import type { KeyLimits } from '../domain/limits.ts';
import { AppError, invalid, type Problem } from '../errors.ts';
import { findApiKey } from '../store/api-keys.ts';
import { keyFieldNames, type LimitInputs, limitFields } from './limit-fields.ts';
import type { Context } from './operation.ts';
import { isoTime } from './shapes.ts';

/** What a key bounds in the keys that are made and changed with it; nothing where the actor is no key. */
export type KeyBounds = { expiresAt: number | undefined; limits: KeyLimits };

export async function ownBounds({ db, actor }: Context): Promise<KeyBounds> {
  const own = actor.kind === 'api_key' ? await findApiKey(db, actor.id) : undefined;
  return { expiresAt: own?.expiresAt, limits: own?.limits ?? {} };
}

/** The end of a key that is made: at the latest that of the key that makes it. @throws AppError invalid */
export function boundedExpiry(wanted: number | undefined, field: string, { expiresAt }: KeyBounds): number | undefined {
  if (wanted === undefined || expiresAt === undefined || wanted <= expiresAt) return wanted ?? expiresAt;
  const message = `is after the end of the key that makes it; allowed: until ${isoTime(expiresAt)}, which is also what counts when it is absent`;
  throw invalid([{ path: field, message }], 'The key was not made');
}

/** Refuses a limit above that of the actor, and to remove one that the actor has. @throws AppError invalid */
export function refuseLimitsAboveOwn(input: LimitInputs, { limits }: KeyBounds, outcome: string): void {
  const problems: Problem[] = [];
  for (const field of keyFieldNames) {
    const own = limits[limitFields[field].name];
    const value = input[field];
    if (own === undefined || value === undefined || (value !== null && value <= own)) continue;
    problems.push({ path: field, message: `is above the limit of the key that you use; allowed: at most ${own}` });
  }
  if (problems.length > 0) throw invalid(problems, outcome);
}

/** @throws AppError forbidden when a key would change its own limits */
export function refuseOwnLimits({ actor }: Context, id: string): void {
  if (actor.kind !== 'api_key' || actor.id !== id) return;
  throw new AppError(
    'forbidden',
    'a key cannot change its own limits; use another key with the scope manage, or the command line of the operator',
  );
}
