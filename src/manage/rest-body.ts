import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { mediaTypeOf } from '../domain/http/media-type.ts';
import { bodyLimits, bodyProblem, exceedsLimits, shortLimits } from '../domain/json/body-limits.ts';
import { withoutObjects } from '../domain/json/cut-objects.ts';
import { parseJson, parseJsonInTurns } from '../domain/json/json.ts';
import { JsonCursor } from '../domain/json/json-cursor.ts';
import { type JsonScan, scanJson } from '../domain/json/json-scan.ts';
import { LongInput } from '../domain/json/long-input.ts';
import { parseLongJson } from '../domain/json/long-json.ts';
import { AppError, invalid } from '../errors.ts';
import { hasBody } from '../http/read-body.ts';
import type { Actor, Operation } from '../operations/operation.ts';
import { bodyLimitsFor } from '../operations/run-operation.ts';
import type { ReadBody } from './large-bodies.ts';

type Fields = { [field: string]: unknown };

/** A request for an operation, and whether there are threads that parse large inputs. */
type Asking = { op: Operation; actor: Actor; hasThreads: boolean };

const notJson = () => new AppError('unsupported', 'Content-Type must be application/json');

/**
 * The object in the body of a request. A large configuration is not parsed here, which would hold the event loop.
 * @throws AppError unsupported, encoded, invalid, tooLarge, tooMany
 */
export async function bodyOf(
  incoming: IncomingMessage,
  { op, actor, hasThreads }: Asking,
  read: ReadBody,
): Promise<Fields | LongInput> {
  if (incoming.method === 'GET' || !hasBody(incoming)) return {};
  const isJson = mediaTypeOf(incoming.headers['content-type']) === 'application/json';
  // A body without Content-Length may be empty, and then needs no type.
  if (!isJson && incoming.headers['content-length'] !== undefined) throw notJson();
  const limits = bodyLimitsFor(op, actor);
  const bytes = await read(incoming, limits.bytes, actor.workspaceId);
  if (bytes.length === 0) return {};
  if (!isJson) throw notJson();
  // Decoding would replace invalid bytes by replacement characters, and those would be stored or sent.
  if (!isUtf8(bytes)) throw invalid([{ path: '', message: 'the body is not UTF-8' }]);
  const scan = scanJson(bytes, limits.depth);
  if (!scan) throw invalid([{ path: '', message: 'the body is not JSON' }]);
  const tooMuch = bodyProblem(scan, limits);
  if (tooMuch) throw new AppError('tooLarge', tooMuch);
  if (!isObject(bytes)) throw invalid([{ path: '', message: 'the body must be a JSON object' }]);
  if (hasThreads && exceedsLimits(bytes.length, scan, shortLimits)) {
    if (op.validatesInput) return new LongInput(bytes);
    if (op.longField !== undefined) return fieldsAround(bytes, op.longField);
  }
  return parsedHere(bytes, scan);
}

/** Whether JSON text is an object. */
function isObject(bytes: Buffer): boolean {
  const cursor = new JsonCursor(bytes);
  cursor.skipSpace();
  return cursor.isAt('object');
}

async function parsedHere(bytes: Buffer, scan: JsonScan): Promise<Fields> {
  const text = bytes.toString('utf8');
  if (!exceedsLimits(bytes.length, scan, shortLimits)) return parseJson(text) as Fields;
  const isLong = exceedsLimits(bytes.length, scan, bodyLimits);
  return (await (isLong ? parseLongJson(text) : parseJsonInTurns(text))) as Fields;
}

/** The fields of a body of which one, when it is a large object, is not parsed. */
async function fieldsAround(bytes: Buffer, field: string): Promise<Fields> {
  const {
    text,
    objects: [object],
  } = withoutObjects(bytes, [field]);
  return { ...((await parseJsonInTurns(text)) as Fields), ...(object && { [field]: new LongInput(object) }) };
}
