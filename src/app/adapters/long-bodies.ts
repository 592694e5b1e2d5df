import { parseJsonInTurns } from '../../domain/json/json.ts';
import { LongText } from '../../domain/json/long-text.ts';
import { createBoundedWork } from '../../domain/work/places.ts';
import { AppError } from '../../errors.ts';
import type { ReadLongBody } from '../../operations/long-body-job.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import { ownMemory, refusalOfJob } from './threads.ts';

const limitMs = 10_000;
const refusedJob = refusalOfJob('the body was not read', 'send less at once');
/** Bodies that are read or wait for a thread; the queue of jobs would hold gigabytes of them. As many as imports. */
const most = { ofWorkspace: 2, ofAll: 8 };

/** Reads bodies of megabytes on threads. */
export function longBodies(threads: ThreadPool): ReadLongBody {
  const inTurn = createBoundedWork(most, 'other large bodies are being read; try again in a few seconds');
  return async (body, { longText, limits, workspaceId }) => {
    const job = { input: { body, limits, longText }, transfer: ownMemory(body), workspaceId, limitMs };
    const output = await inTurn(workspaceId, () => threads.run({ kind: 'read-body', ...job }).catch(refusedJob));
    if ('refused' in output) {
      const { kind, message, problems } = output.refused;
      throw new AppError(kind, message, { problems });
    }
    const fields = (await parseJsonInTurns(output.rest)) as { [field: string]: unknown };
    return output.text ? { ...fields, [longText.field]: new LongText(output.text) } : fields;
  };
}
