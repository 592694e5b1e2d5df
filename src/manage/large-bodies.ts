import type { IncomingMessage } from 'node:http';
import { configurationLimits } from '../domain/json/body-limits.ts';
import type { SharedArrivals } from '../domain/visit.ts';
import { createBoundedWork } from '../domain/work/bounded-work.ts';
import { checkBodyHeaders, readBody } from '../http/read-body.ts';

/** Bodies of more than a configuration that are read at the same time. */
const most = { ofWorkspace: 2, ofAll: 8 };

/**
 * Reads bodies. One that is larger than a configuration must announce its length, and takes a slot while it arrives.
 * @throws AppError encoded, tooLarge, tooMany
 */
export type ReadBody = (request: IncomingMessage, limitBytes: number, workspaceId: string) => Promise<Buffer>;

export function createBodyReader(arriving: SharedArrivals): ReadBody {
  const inTurn = createBoundedWork(most, 'other large bodies are being read; try again in a few seconds');
  return async (request, limitBytes, workspaceId) => {
    checkBodyHeaders(request, limitBytes);
    const party = { workspaceId };
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced <= configurationLimits.bytes)
      return readBody(request, Math.min(limitBytes, configurationLimits.bytes), party, arriving.of(party));
    return inTurn(workspaceId, () => readBody(request, limitBytes, party));
  };
}
