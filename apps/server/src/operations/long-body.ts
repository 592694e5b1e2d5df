import { AppError, type ErrorKind, invalidInputError, type Problem } from '@toolhost/errors/errors';
import { bodyLimits, checkBody } from '@toolhost/json/body-limits';
import { containsNul, parseLongJson } from '@toolhost/json/json';
import type { BodyLimits } from '@toolhost/json/json-scan';

/** Fields of an input as received. */
type Fields = { [field: string]: unknown };

/** Problem of a text that contains U+0000, which PostgreSQL cannot store. */
export const nulProblem: Problem = { path: '', message: 'a text contains the character U+0000; remove it' };

/**
 * Parses a long body on a thread. Its long members, or those of the arguments in it, become `LargeValue`s.
 * @throws AppError
 */
export type ReadLongBody = (
  body: Buffer,
  actor: { workspaceId: string; id: string },
  options: Omit<ReadBodyJob['input'], 'body'>,
) => Promise<unknown>;

/** Field that may be a text of several megabytes, and its maximum number of characters. */
type LongTextField = { field: string; characters: number };

/**
 * Job that parses the body of an operation request, or an MCP message with its arguments. `remainder` is the JSON text
 * with null in place of each long member: a field of the body, or an argument of the message at `index`. A refusal is
 * output too, because errors lose their class between threads.
 */
export type ReadBodyJob = {
  input: { body: Uint8Array; limits: BodyLimits; isMessage: boolean; longText?: LongTextField | undefined };
  output: { remainder: string; longMembers: LongMember[] } | Refused;
};

type LongMember = { index: number; name: string; bytes: Uint8Array<ArrayBuffer>; isText: boolean };
type Refused = { refused: { kind: ErrorKind; message: string; problems: readonly Problem[] } };

/** Maximum length of a member that stays JSON text, in characters. */
const maxShortLength = 1000;
/** Maximum number of members that are passed on. Others are omitted, because no operation accepts more anyway. */
const maxMembers = 500;

export async function readLongBody(
  input: ReadBodyJob['input'],
): Promise<{ output: ReadBodyJob['output']; transfer?: ArrayBuffer[] }> {
  try {
    const output = await splitLongMembers(input);
    return { output, transfer: output.longMembers.map(({ bytes }) => bytes.buffer) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { kind, message, problems } = error;
    return { output: { refused: { kind, message, problems } } };
  }
}

async function splitLongMembers({ body, limits, isMessage, longText }: ReadBodyJob['input']) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!isMessage) checkBody(bytes, limits);
  const parsed = (await parseLongJson(bytes.toString('utf8'))) as Fields;
  const messages = isMessage && Array.isArray(parsed) ? parsed : [parsed];
  const longMembers: LongMember[] = [];
  for (const [index, message] of messages.entries()) {
    const fields = isMessage ? (message as { params?: Fields } | null)?.params?.arguments : message;
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) continue;
    if (containsNul(fields)) throw invalidInputError([nulProblem]);
    if (longText) checkText((fields as Fields)[longText.field], longText);
    const members = Object.entries(fields);
    for (const [name] of members.splice(maxMembers)) delete (fields as Fields)[name];
    for (const [name, value] of members) {
      const isText = typeof value === 'string';
      const text = isText ? value : JSON.stringify(value);
      if (text.length <= maxShortLength) continue;
      longMembers.push({ index, name, bytes: new TextEncoder().encode(text), isText });
      (fields as Fields)[name] = null;
    }
  }
  const remainder = JSON.stringify(parsed);
  if (Buffer.byteLength(remainder) > bodyLimits.bytes)
    throw new AppError(
      'tooLarge',
      `the body without its long fields is larger than ${bodyLimits.bytes} bytes; send less`,
    );
  return { remainder, longMembers };
}

function checkText(text: unknown, { field, characters }: LongTextField): void {
  if (typeof text !== 'string' || text.length <= characters) return;
  const message = `found ${text.length} characters; allowed: at most ${characters} characters`;
  throw invalidInputError([{ path: field, message }]);
}
