const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Has signals that end the process wait until `work` has ended. The listeners stay: the system may have given a signal
 * to a thread of the process that has not run since, and without a listener that signal would be lost.
 */
export async function whileSignalsWait<Result>(work: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  let waiting: NodeJS.Signals | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (!isOver) waiting = signal;
    // Listeners that were added later decide themselves, and those before have decided.
    else if (process.listeners(signal).at(-1) === onSignal) end(signal);
  };
  const end = (signal: NodeJS.Signals) => {
    for (const each of signals) process.off(each, onSignal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await work();
  } finally {
    isOver = true;
    if (waiting) end(waiting);
  }
}
