import { type BodyLimits, bodyLimits, checkBody, mostParsed } from '../domain/json/body-limits.ts';
import type { LongTextField } from '../domain/json/long-text.ts';
import { AppError, type ErrorKind, invalid, type Problem } from '../errors.ts';
import { errorOfFault, nulFault } from './servers/sent-config.ts';

type Fields = { [field: string]: unknown };

/** Reads a body of megabytes on a thread; its long text becomes a `LongText`. @throws AppError */
export type ReadLongBody = (
  body: Buffer,
  of: Omit<LongBodyJob['input'], 'body'> & { workspaceId: string },
) => Promise<Fields>;

/**
 * Reading such a body. `text` is the long text in UTF-8, and `rest` JSON text of the other fields, or of all where no text
 * is long. A refusal is an output, because errors lose their class between threads.
 */
export type LongBodyJob = {
  input: { body: Uint8Array; limits: BodyLimits; longText: LongTextField };
  output: { rest: string; text?: Uint8Array<ArrayBuffer> } | Refused;
};

type Refused = { refused: { kind: ErrorKind; message: string; problems: readonly Problem[] } };

export function readLongBody(input: LongBodyJob['input']): { output: LongBodyJob['output']; transfer?: ArrayBuffer[] } {
  try {
    const output = partsOf(input);
    return { output, transfer: output.text ? [output.text.buffer] : [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { kind, message, problems } = error;
    return { output: { refused: { kind, message, problems } } };
  }
}

function partsOf({ body, limits, longText }: LongBodyJob['input']): { rest: string; text?: Uint8Array<ArrayBuffer> } {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  checkBody(bytes, limits);
  const fields = JSON.parse(bytes.toString('utf8')) as Fields;
  const { [longText.field]: text, ...others } = fields;
  const isLong = typeof text === 'string' && text.length > mostParsed.characters;
  if (text !== undefined && typeof text !== 'string')
    throw invalid([{ path: longText.field, message: 'allowed: a string, which may be JSON text' }]);
  const rest = JSON.stringify(isLong ? others : fields);
  if (Buffer.byteLength(rest) > bodyLimits.bytes)
    throw new AppError('tooLarge', `the body without ${longText.field} is larger than ${bodyLimits.bytes} bytes`);
  if (!isLong) return { rest };
  checkText(text, longText);
  return { rest, text: new TextEncoder().encode(text) };
}

function checkText(text: string, { field, characters }: LongTextField): void {
  const message = `found ${text.length} characters; allowed: at most ${characters} characters`;
  if (text.length > characters) throw invalid([{ path: field, message }]);
  if (text.includes('\0')) throw errorOfFault(nulFault);
}
