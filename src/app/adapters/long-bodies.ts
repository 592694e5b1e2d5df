import { parseJsonInTurns } from '../../domain/json/json.ts';
import { LongValue } from '../../domain/json/long-value.ts';
import { Gate } from '../../domain/work/gate.ts';
import { AppError } from '../../errors.ts';
import type { ReadBodyJob, ReadLongBody } from '../../operations/long-body.ts';
import { fewAtOnce } from '../../operations/quotas/gate.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import { importTimes, jobTimes, ownMemory, refusalOfJob } from './threads.ts';

const refusedJob = refusalOfJob('the body was not read', 'send smaller requests');

type Fields = { [field: string]: unknown };

/** Creates a function that parses long bodies on threads. */
export function longBodies(threads: ThreadPool, waitingBytes: number): ReadLongBody {
  const gate = new Gate({ rule: fewAtOnce('large bodies'), atOnce: 8, waitingBytes });
  return async (body, actor, of) => {
    const input: ReadBodyJob['input'] = { body, ...of };
    // The length and the start of a message are still needed after it was parsed.
    const transfer = of.isMessage ? [] : ownMemory(body);
    const job = {
      kind: 'read-body' as const,
      input,
      transfer,
      // A document waits as long as its import.
      ...jobTimes,
      waitMs: importTimes.waitMs,
      workspaceId: actor.workspaceId,
    };
    const output = await gate.run(actor, () => threads.run(job).catch(refusedJob), body.length);
    if ('refused' in output) {
      const { kind, message, problems } = output.refused;
      throw new AppError(kind, message, { problems });
    }
    const read = await parseJsonInTurns(output.rest);
    for (const { index, name, bytes, isText } of output.long) {
      const one = (Array.isArray(read) ? read[index] : read) as Fields;
      const fields = of.isMessage ? (one.params as { arguments: Fields }).arguments : one;
      fields[name] = new LongValue(bytes, isText);
    }
    return read;
  };
}
