import { readdirSync } from 'node:fs';
import { counter, gauge, label, type Metric, type Source } from './metric.ts';

/** Metrics of the process, under the usual names for Prometheus. */
export const processSources: readonly Source[] = [
  gauge('toolhost_processes', 'Processes whose numbers are in this answer.', () => 1),
  counter('process_cpu_seconds_total', 'CPU time of the process in seconds, user and system.', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }),
  gauge(
    'process_start_time_seconds',
    'When the process started, in seconds since 1970.',
    () => performance.timeOrigin / 1000,
    { merge: 'min' },
  ),
  gauge('process_resident_memory_bytes', 'Memory of the process that is in RAM.', () => process.memoryUsage.rss()),
  gauge('process_open_fds', 'Open files and sockets; 0 where the system does not tell.', openFiles),
  gauge('nodejs_heap_size_used_bytes', 'Memory in use on the JavaScript heap.', () => process.memoryUsage().heapUsed),
  gauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers outside the JavaScript heap.',
    () => process.memoryUsage().external,
  ),
  counter(
    'toolhost_event_loop_busy_seconds_total',
    'Time that the event loop was busy; its rate is the share of one core.',
    () => performance.eventLoopUtilization().active / 1000,
  ),
];

function openFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    // The folder exists only on Linux.
    return 0;
  }
}

/** A constant 1 whose labels give the version and the mode. */
export function buildInfo(about: { version: string; mode: string; database: string }): Metric {
  const labels = Object.entries({ ...about, node: process.version }).map(([name, value]) => label(name, value));
  return {
    name: 'toolhost_build_info',
    help: 'What is running; always 1.',
    type: 'gauge',
    merge: 'max',
    samples: [{ suffix: '', labels: labels.join(','), value: 1 }],
  };
}
