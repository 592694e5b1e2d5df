import type { IncomingMessage } from 'node:http';
import { mediaTypeOf } from '../domain/http/media-type.ts';
import { bodyLimits, checkBody, exceedsLimits, shortLimits } from '../domain/json/body-limits.ts';
import { withoutObjects } from '../domain/json/cut-objects.ts';
import { parseJsonInTurns } from '../domain/json/json.ts';
import { LongInput } from '../domain/json/long-input.ts';
import { parseScanned } from '../domain/json/long-json.ts';
import { AppError } from '../errors.ts';
import { hasBody } from '../http/read-body.ts';
import type { ReadLongBody } from '../operations/long-body-job.ts';
import type { Actor, Operation } from '../operations/operation.ts';
import { bodyLimitsFor } from '../operations/run-operation.ts';
import type { ReadBody } from './large-bodies.ts';

type Fields = { [field: string]: unknown };

/** A request for an operation. Without threads that read large bodies, they are read here. */
type Asking = { op: Operation; actor: Actor; readLongBody: ReadLongBody | undefined };

const notJson = () => new AppError('unsupported', 'Content-Type must be application/json');

/**
 * The object in the body of a request. A large configuration is not parsed here, which would hold the event loop.
 * @throws AppError unsupported, encoded, invalid, tooLarge, tooMany
 */
export async function bodyOf(
  incoming: IncomingMessage,
  { op, actor, readLongBody }: Asking,
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
  if (readLongBody && op.longText && bytes.length > bodyLimits.bytes)
    return readLongBody(bytes, { longText: op.longText, limits, workspaceId: actor.workspaceId });
  const scan = checkBody(bytes, limits);
  if (readLongBody && exceedsLimits(bytes.length, scan, shortLimits)) {
    if (op.validatesInput) return new LongInput(bytes);
    if (op.longField !== undefined) return fieldsAround(bytes, op.longField);
  }
  return (await parseScanned(bytes, scan)) as Fields;
}

/** The fields of a body of which one, when it is a large object, is not parsed. */
async function fieldsAround(bytes: Buffer, field: string): Promise<Fields> {
  const {
    text,
    objects: [object],
  } = withoutObjects(bytes, [field]);
  return { ...((await parseJsonInTurns(text)) as Fields), ...(object && { [field]: new LongInput(object) }) };
}
