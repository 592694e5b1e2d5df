/**
 * Loaded by each thread of a process with `hangingJobOptions`. A job whose input contains `hang at` blocks in a native
 * function that cannot be interrupted, as some functions of V8 cannot: it reads a pipe until the pipe is closed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isMainThread, parentPort } from 'node:worker_threads';

type JobMessage = { input?: { body?: unknown; document?: unknown } };

if (!isMainThread && parentPort) {
  const port = parentPort;
  const on = port.on.bind(port) as (event: string, listener: (value: never) => void) => typeof port;
  port.on = (event: string, listener: (value: never) => void) =>
    on(event, (value: JobMessage) => {
      const { body, document = body } = (event === 'message' && value?.input) || {};
      const text = document instanceof Uint8Array ? Buffer.from(document.subarray(0, 1000)).toString() : '';
      const pipe = /"hang at":"([^"]+)"/.exec(text);
      // A job that was already released has no pipe anymore. With `utf8`, Node opens and reads in one native function.
      // Without it, a thread could be terminated between the two.
      if (pipe && existsSync(pipe[1] as string)) readFileSync(pipe[1] as string, 'utf8');
      listener(value as never);
    });
}
