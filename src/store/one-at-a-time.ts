/**
 * Runs work one at a time. All callers that ask during a run share the next run, so that nothing piles up while the
 * database does not answer.
 */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  return function run(): Promise<void> {
    if (running) {
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return run();
        });
      return next;
    }
    running = work().finally(() => {
      running = undefined;
    });
    return running;
  };
}
