import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { endOfFile } from './worker.ts';

/** Message to the parent process: a failed test, or the number of tests at the end of a file. */
export type RunnerMessage = { failure: { name: string; reason: string } } | { tests: number };

/** Reports each failure as it happens, and the end of each file, to the parent process. Prints nothing. */
export default async function* reportToParent(events: AsyncIterable<TestEvent>): AsyncGenerator<never> {
  const send = (word: RunnerMessage) => process.send?.(word);
  const names: string[] = [];
  /** Errors that no test has failed with yet. An error after the end of its test belongs to no test. */
  const orphanedErrors = new Set<unknown>();
  process.on('uncaughtExceptionMonitor', (error) => orphanedErrors.add(error));
  process.on('unhandledRejection', (error) => orphanedErrors.add(error));
  let tests = 0;
  for await (const { type, data } of events) {
    if (type === 'test:start') names.splice(data.nesting, names.length, data.name);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.nesting === 0 && data.name === endOfFile) {
      for (const error of orphanedErrors)
        send({ failure: { name: 'after the end of a test', reason: inspect(error) } });
      send({ tests });
      orphanedErrors.clear();
      tests = 0;
      continue;
    }
    if (data.details.type !== 'suite') tests++;
    const error = type === 'test:fail' ? data.details.error : undefined;
    orphanedErrors.delete(error?.cause);
    const reason = getFailureReason(error, data.skip ?? data.todo);
    if (reason !== undefined)
      send({ failure: { name: [...names.slice(0, data.nesting), data.name].join(' › '), reason } });
  }
}

/** Returns the reason of a failure; undefined if the test passed or only its subtests failed. */
function getFailureReason(error: (Error & { failureType?: string }) | undefined, skipped: unknown): string | undefined {
  if (error?.failureType === 'subtestsFailed') return undefined;
  if (error) return inspect(error.cause ?? error);
  return skipped === undefined
    ? undefined
    : 'the test was skipped: a test that cannot run must fail and say what to install';
}
