import { readdirSync } from 'node:fs';
import { label, type Metric, type Source } from './metric.ts';

/** Metrics of the process, under the usual names for Prometheus. */
export const processSources: readonly Source[] = [
  {
    name: 'toolhost_processes',
    help: 'Processes whose numbers are in this answer.',
    type: 'gauge',
    read: () => 1,
  },
  {
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process in seconds, user and system.',
    type: 'counter',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  },
  {
    name: 'process_start_time_seconds',
    help: 'When the process started, in seconds since 1970.',
    type: 'gauge',
    merge: 'min',
    read: () => performance.timeOrigin / 1000,
  },
  {
    name: 'process_resident_memory_bytes',
    help: 'Memory of the process that is in RAM.',
    type: 'gauge',
    read: () => process.memoryUsage.rss(),
  },
  {
    name: 'process_open_fds',
    help: 'Open files and sockets; 0 where the system does not tell.',
    type: 'gauge',
    read: openFiles,
  },
  {
    name: 'nodejs_heap_size_used_bytes',
    help: 'Memory in use on the JavaScript heap.',
    type: 'gauge',
    read: () => process.memoryUsage().heapUsed,
  },
  {
    name: 'nodejs_external_memory_bytes',
    help: 'Memory of buffers outside the JavaScript heap.',
    type: 'gauge',
    read: () => process.memoryUsage().external,
  },
  {
    name: 'toolhost_event_loop_busy_seconds_total',
    help: 'Time that the event loop was busy; its rate is the share of one core.',
    type: 'counter',
    read: () => performance.eventLoopUtilization().active / 1000,
  },
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
