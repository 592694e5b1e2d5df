import type { IncomingMessage } from 'node:http';
import { configurationLimits } from '../domain/json/body-limits.ts';
import type { ArrivingBodies, Party, SharedArrivals } from '../domain/visit.ts';
import { createPlaces } from '../domain/work/places.ts';
import { checkBodyHeaders, readBody } from '../http/read-body.ts';

/** Bodies of more than a configuration that are read at the same time. */
const most = { ofWorkspace: 2, ofAll: 8 };
const firmMs = 2000;

/**
 * Reads bodies. One that is larger than a configuration must announce its length, and takes a place while it arrives.
 * @throws AppError encoded, tooLarge, tooMany
 */
export type ReadBody = (request: IncomingMessage, limitBytes: number, workspaceId: string) => Promise<Buffer>;

/** `clock` gives monotonic ms in which this process ran. */
export function createBodyReader(arriving: SharedArrivals, clock: () => number): ReadBody {
  const inPlace = createPlaces({
    most,
    firmMs,
    clock,
    noRoom: 'other large bodies are being read; try again in a few seconds',
    lost: 'the body was not read: it came slowly while others waited; send it again',
  });
  return async (request, limitBytes, workspaceId) => {
    checkBodyHeaders(request, limitBytes);
    const party = { workspaceId };
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced <= configurationLimits.bytes)
      return readBody(request, Math.min(limitBytes, configurationLimits.bytes), party, arriving.of(party));
    const read = (gone: AbortSignal) => readUntilGone(request, limitBytes, party, gone);
    return inPlace(workspaceId, ({ gone, slowly }) => slowly(() => read(gone)));
  };
}

/** Reads a body as long as it has its place, and then frees what was read and keeps no more. */
function readUntilGone(request: IncomingMessage, limitBytes: number, party: Party, gone: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let free: (() => void) | undefined;
    gone.addEventListener('abort', () => {
      free?.();
      reject(gone.reason);
    });
    const arriving: ArrivingBodies = {
      hold(_request, _bytes, giveUp) {
        if (gone.aborted) giveUp();
        else free = giveUp;
      },
      release() {
        free = undefined;
      },
    };
    readBody(request, limitBytes, party, arriving).then(resolve, reject);
  });
}
