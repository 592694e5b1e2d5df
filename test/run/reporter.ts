import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { endOfFile } from './worker.ts';

/** To the parent: a test that failed, and at the end of a file how many tests it has. */
export type Word = { failure: { name: string; reason: string } } | { tests: number };

/** Tells the parent process of each failure when it happens, and of the end of each file. Prints nothing. */
export default async function* tellParent(events: AsyncIterable<TestEvent>): AsyncGenerator<never> {
  const say = (word: Word) => process.send?.(word);
  const names: string[] = [];
  /** Errors that no test has failed with yet: after the end of its test, an error is no part of it. */
  const stray = new Set<unknown>();
  process.on('uncaughtExceptionMonitor', (error) => stray.add(error));
  process.on('unhandledRejection', (error) => stray.add(error));
  let tests = 0;
  for await (const { type, data } of events) {
    if (type === 'test:start') names.splice(data.nesting, names.length, data.name);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.nesting === 0 && data.name === endOfFile) {
      for (const error of stray) say({ failure: { name: 'after the end of a test', reason: inspect(error) } });
      say({ tests });
      stray.clear();
      tests = 0;
      continue;
    }
    if (data.details.type !== 'suite') tests++;
    const error = type === 'test:fail' ? data.details.error : undefined;
    stray.delete(error?.cause);
    const reason = reasonOf(error, data.skip ?? data.todo);
    if (reason !== undefined)
      say({ failure: { name: [...names.slice(0, data.nesting), data.name].join(' › '), reason } });
  }
}

/** Why a test failed; undefined when it passed, or when only tests within it failed. */
function reasonOf(error: (Error & { failureType?: string }) | undefined, skipped: unknown): string | undefined {
  if (error?.failureType === 'subtestsFailed') return undefined;
  if (error) return inspect(error.cause ?? error);
  return skipped === undefined ? undefined : 'it was skipped: a test that cannot run fails, and says what to install';
}
