import { bodyLimits } from '../domain/json/body-limits.ts';
import { holdsNul, parseJsonInTurns, plainNumbers } from '../domain/json/json.ts';
import { LongValue, longBytesOf } from '../domain/json/long-value.ts';
import { problemsOf } from '../domain/problems/problems.ts';
import { AppError, invalid, type Problem } from '../errors.ts';
import type { Operation } from './operation.ts';

/** The fields of an input as received. */
type Fields = { [field: string]: unknown };

/** PostgreSQL cannot store U+0000 in a text. */
export const nulFault: Problem = { path: '', message: 'a text holds the character U+0000; leave it out' };

/**
 * The input of an operation. Exact numbers become plain ones, but for the arguments of a tool and for configurations.
 * @throws AppError invalid, tooLarge
 */
export async function inputOf(op: Operation, raw: unknown): Promise<Fields> {
  const given = (raw ?? {}) as Fields;
  if (holdsNul(given)) throw invalid([nulFault]);
  if (op.validatesInput) return given;
  const fields = await opened(given, op.long?.field);
  const long = op.long && fields[op.long.field];
  const checked = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (value instanceof LongValue) return [name, value.isText ? 'a long text' : {}];
      return [name, name === 'arguments' || name === op.long?.field ? value : plainNumbers(value)];
    }),
  );
  const parsed = op.input.safeParse(checked);
  if (!parsed.success) throw invalid(problemsOf(parsed.error.issues, checked, () => Object.keys(op.input.shape)));
  return long instanceof LongValue ? { ...parsed.data, [op.long?.field ?? '']: long } : parsed.data;
}

/** The same fields with all long values parsed but one. @throws AppError tooLarge */
async function opened(fields: Fields, kept: string | undefined): Promise<Fields> {
  const bytes = longBytesOf(kept === undefined ? fields : { ...fields, [kept]: undefined });
  if (bytes === 0) return fields;
  if (bytes > bodyLimits.bytes)
    throw new AppError('tooLarge', `the body without ${kept ?? 'long texts'} is larger than ${bodyLimits.bytes} bytes`);
  const all = { ...fields };
  for (const [name, value] of Object.entries(fields))
    if (value instanceof LongValue && name !== kept) all[name] = await parseJsonInTurns(value.json);
  return all;
}
