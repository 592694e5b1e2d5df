import type { IncomingMessage } from 'node:http';
import { configurationLimits } from '../domain/json/json.ts';
import { AppError } from '../errors.ts';
import { checkBodyLength, readBody } from '../http/read-body.ts';

/** Bodies of more than a configuration that are read at the same time. */
const most = { ofWorkspace: 2, ofAll: 8 };

/**
 * Reads bodies. One that is larger than a configuration must announce its length, and takes a slot while it arrives.
 * @throws AppError tooLarge, tooMany
 */
export type ReadBody = (request: IncomingMessage, limitBytes: number, workspaceId: string) => Promise<Buffer>;

export function createBodyReader(): ReadBody {
  const reading = new Map<string, number>();
  let all = 0;
  return async (request, limitBytes, workspaceId) => {
    checkBodyLength(request, limitBytes);
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced <= configurationLimits.bytes)
      return readBody(request, Math.min(limitBytes, configurationLimits.bytes));
    const ofWorkspace = reading.get(workspaceId) ?? 0;
    if (all >= most.ofAll || ofWorkspace >= most.ofWorkspace) {
      throw new AppError('tooMany', 'other large bodies are being read; try again in a few seconds', {
        retryAfterS: 5,
      });
    }
    all++;
    reading.set(workspaceId, ofWorkspace + 1);
    try {
      return await readBody(request, limitBytes);
    } finally {
      all--;
      const left = (reading.get(workspaceId) ?? 1) - 1;
      if (left > 0) reading.set(workspaceId, left);
      else reading.delete(workspaceId);
    }
  };
}
