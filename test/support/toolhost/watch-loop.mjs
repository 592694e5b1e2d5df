/**
 * Loaded before the service. Writes a line at each SIGUSR2: the longest time of the processor that one turn of the event
 * loop took since the signal before, in units of the work by which tests measure.
 */
import { isMainThread } from 'node:worker_threads';

const rows = Array.from({ length: 4000 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ['a', 'b'], price: i / 8 }));
const rounds = 18;

function cpuMs() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function unitMs() {
  const document = JSON.stringify(rows);
  const took = Array.from({ length: 5 }, () => {
    const before = cpuMs();
    for (let i = 0; i < rounds; i++) JSON.stringify(JSON.parse(document));
    return cpuMs() - before;
  });
  return took.toSorted((a, b) => a - b)[2];
}

if (isMainThread) {
  let last = cpuMs();
  let longest = 0;
  const tick = () => {
    longest = Math.max(longest, cpuMs() - last);
    last = cpuMs();
    setImmediate(tick).unref();
  };
  tick();
  setInterval(() => undefined, 1).unref();
  process.on('SIGUSR2', () => {
    process.stderr.write(`held ${longest / unitMs()}\n`);
    last = cpuMs();
    longest = 0;
  });
}
