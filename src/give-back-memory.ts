/** Collects all garbage of this thread, which V8 would otherwise keep until there is load. `bin/toolhost` exposes `gc`. */
export function giveBackMemory(): void {
  globalThis.gc?.({ type: 'major', flavor: 'last-resort' });
}
