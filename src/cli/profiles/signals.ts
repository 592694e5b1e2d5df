const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Has signals that end the process wait until `work` has ended. The listeners stay until the next work: the system may
 * have given a signal to a thread of the process that has not run since, and without a listener that signal would be lost.
 */
export async function whileSignalsWait<Result>(work: () => Promise<Result>): Promise<Result> {
  let waiting: NodeJS.Signals | undefined;
  const take = (signal: NodeJS.Signals) => {
    if (!onSignal.isOver) waiting = signal;
    // Listeners that were added later decide themselves, and those before have decided.
    else if (process.listeners(signal).at(-1) === onSignal) end(signal);
  };
  const onSignal = Object.assign(take, { isOver: false });
  const end = (signal: NodeJS.Signals) => {
    for (const each of signals) process.off(each, onSignal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) {
    const before = process.listeners(signal).filter((other) => 'isOver' in other && other.isOver === true);
    process.on(signal, onSignal);
    for (const other of before) process.off(signal, other);
  }
  try {
    return await work();
  } finally {
    onSignal.isOver = true;
    if (waiting) end(waiting);
  }
}
