import { AppError } from '@toolhost/errors/errors';
import { parseJsonInChunks } from '@toolhost/json/json';
import { LargeValue } from '@toolhost/json/large-value';
import { ConcurrencyLimiter } from '@toolhost/limits/concurrency-limiter';
import type { ReadBodyJob, ReadLongBody } from '../../operations/long-body.ts';
import { describeRule } from '../../operations/quotas/concurrency-limiters.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import { createThrowJobError, importTimes, jobTimes, toTransferable } from './threads.ts';

const throwJobError = createThrowJobError('the body was not read', 'send smaller requests');

type Fields = { [field: string]: unknown };

/** Creates a function that parses long bodies on threads. */
export function createReadLongBody(threads: ThreadPool, maxQueuedBytes: number): ReadLongBody {
  const limiter = new ConcurrencyLimiter({ rule: describeRule('large bodies'), maxConcurrent: 8, maxQueuedBytes });
  return async (body, actor, options) => {
    const input: ReadBodyJob['input'] = { body, ...options };
    // A transferred buffer becomes empty, but the length and the start of a message are needed after parsing.
    const transfer = options.isMessage ? [] : toTransferable(body);
    const job = {
      kind: 'read-body' as const,
      input,
      transfer,
      // The body may be a document to import, so it may be queued for as long as an import.
      times: { limitMs: jobTimes.limitMs, queueTimeoutMs: importTimes.queueTimeoutMs },
      ownerId: actor.workspaceId,
    };
    const result = await limiter.run(actor, () => threads.run(job).catch(throwJobError), body.length);
    if ('refused' in result) {
      const { kind, message, problems } = result.refused;
      throw new AppError(kind, message, { problems });
    }
    const value = await parseJsonInChunks(result.remainder);
    for (const { index, name, bytes, isText } of result.longMembers) {
      const item = (Array.isArray(value) ? value[index] : value) as Fields;
      const fields = options.isMessage ? (item.params as { arguments: Fields }).arguments : item;
      fields[name] = new LargeValue(bytes, isText);
    }
    return value;
  };
}
