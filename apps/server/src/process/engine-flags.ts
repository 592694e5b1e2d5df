import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * V8 flags of a running service, measured in bench/README.md. V8 only accepts cached code that was compiled with the same
 * flags, and Node contains the compiled code of its own modules, without any flags. So a process starts without these
 * flags, which takes a sixth less processor time. `bin/toolhost` has those that do not affect cached code.
 *
 * - `--no-allocation-site-pretenuring`: V8 pretenures objects of a single call into the old generation once some of them
 *   have lived long. Everything that they refer to then stays until the next major collection.
 * - `--heap-growing-percent=100`: objects that slow calls hold for seconds are also freed only by a major collection.
 *   With V8's default heap growth, a workspace with slow upstreams causes one every second. If the heap may grow to
 *   twice its live size, there is one every six seconds.
 * - `--max-semi-space-size=0`: removes the limit of the command line, which has already limited the young generation of
 *   the main thread, and would override the limits of threads that start later.
 */
const serviceFlags = ['--no-allocation-site-pretenuring', '--heap-growing-percent=100', '--max-semi-space-size=0'];

/** Sets the flags of a running service, for all threads. */
export function setServiceFlags(): void {
  for (const flag of serviceFlags) setFlagsFromString(flag);
}

/** Collects all garbage of this thread, which V8 would otherwise retain until there is load. */
export function releaseMemory(): void {
  // V8 creates the function in new contexts only.
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as (options: object) => void;
  setFlagsFromString('--no-expose-gc');
  collectGarbage({ type: 'major', flavor: 'last-resort' });
}
