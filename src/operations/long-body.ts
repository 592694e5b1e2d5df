import { bodyLimits, checkBody } from '../domain/json/body-limits.ts';
import { holdsNul, parseLongJson } from '../domain/json/json.ts';
import type { BodyLimits } from '../domain/json/json-scan.ts';
import { AppError, type ErrorKind, invalid, type Problem } from '../errors.ts';

/** The fields of an input as received. */
type Fields = { [field: string]: unknown };

/** PostgreSQL cannot store U+0000 in a text. */
export const nulFault: Problem = { path: '', message: 'a text holds the character U+0000; leave it out' };

/** Reads a long body on a thread; its long members, or those of the arguments in it, are `LongValue`s. @throws AppError */
export type ReadLongBody = (
  body: Buffer,
  actor: { workspaceId: string; id: string },
  of: Omit<ReadBodyJob['input'], 'body'>,
) => Promise<unknown>;

/** A field that may be a text of megabytes, and how many characters that may have. */
type LongText = { field: string; characters: number };

/**
 * Reading the body of a request for an operation, or of a message of MCP with its arguments. `rest` is JSON text of it, with
 * null for each long member: of the body, or of the arguments of the message at `index`. A refusal is an output, because
 * errors lose their class between threads.
 */
export type ReadBodyJob = {
  input: { body: Uint8Array; limits: BodyLimits; isMessage: boolean; longText?: LongText | undefined };
  output: { rest: string; long: LongMember[] } | Refused;
};

type LongMember = { index: number; name: string; bytes: Uint8Array<ArrayBuffer>; isText: boolean };
type Refused = { refused: { kind: ErrorKind; message: string; problems: readonly Problem[] } };

/** A longer member stays JSON text, in characters. */
const mostOfMember = 1000;
/** No operation takes so many members. Others are left out, because the input is refused for those that are passed on. */
const mostMembers = 500;

export async function readLongBody(
  input: ReadBodyJob['input'],
): Promise<{ output: ReadBodyJob['output']; transfer?: ArrayBuffer[] }> {
  try {
    const output = await partsOf(input);
    return { output, transfer: output.long.map(({ bytes }) => bytes.buffer) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { kind, message, problems } = error;
    return { output: { refused: { kind, message, problems } } };
  }
}

async function partsOf({ body, limits, isMessage, longText }: ReadBodyJob['input']) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!isMessage) checkBody(bytes, limits);
  const read = (await parseLongJson(bytes.toString('utf8'))) as Fields;
  const messages = isMessage && Array.isArray(read) ? read : [read];
  const long: LongMember[] = [];
  for (const [index, message] of messages.entries()) {
    const fields = isMessage ? (message as { params?: Fields } | null)?.params?.arguments : message;
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) continue;
    if (holdsNul(fields)) throw invalid([nulFault]);
    if (longText) checkText((fields as Fields)[longText.field], longText);
    const members = Object.entries(fields);
    for (const [name] of members.splice(mostMembers)) delete (fields as Fields)[name];
    for (const [name, value] of members) {
      const isText = typeof value === 'string';
      const text = isText ? value : JSON.stringify(value);
      if (text.length <= mostOfMember) continue;
      long.push({ index, name, bytes: new TextEncoder().encode(text), isText });
      (fields as Fields)[name] = null;
    }
  }
  const rest = JSON.stringify(read);
  if (Buffer.byteLength(rest) > bodyLimits.bytes)
    throw new AppError('tooLarge', `the body without its long fields is larger than ${bodyLimits.bytes} bytes`);
  return { rest, long };
}

function checkText(text: unknown, { field, characters }: LongText): void {
  if (typeof text !== 'string' || text.length <= characters) return;
  const message = `found ${text.length} characters; allowed: at most ${characters} characters`;
  throw invalid([{ path: field, message }]);
}
