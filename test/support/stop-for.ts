/** Does nothing in this process for so long, as if it were stopped. */
export function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
