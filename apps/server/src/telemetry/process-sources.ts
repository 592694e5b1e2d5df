import { readdirSync } from 'node:fs';
import { createCounterSource, createGauge, formatLabel, type Metric, type Source } from './metric.ts';

/** Metrics of the process, under the standard Prometheus names. */
export const processSources: readonly Source[] = [
  createGauge('toolhost_processes', 'Processes whose metrics are in this response.', () => 1),
  createCounterSource('process_cpu_seconds_total', 'CPU time of the process in seconds, user and system.', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }),
  createGauge(
    'process_start_time_seconds',
    'Start time of the process, in seconds since 1970.',
    () => performance.timeOrigin / 1000,
    { merge: 'min' },
  ),
  createGauge('process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss()),
  createGauge('process_open_fds', 'Open files and sockets; 0 if the system does not report them.', countOpenFiles),
  createGauge(
    'nodejs_heap_size_used_bytes',
    'Memory used on the JavaScript heap.',
    () => process.memoryUsage().heapUsed,
  ),
  createGauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers outside the JavaScript heap.',
    () => process.memoryUsage().external,
  ),
  createCounterSource(
    'toolhost_event_loop_busy_seconds_total',
    'Time that the event loop was busy. Its rate is the share of one core.',
    () => performance.eventLoopUtilization().active / 1000,
  ),
];

function countOpenFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    // The directory exists only on Linux.
    return 0;
  }
}

/** Returns a metric with the constant value 1, whose labels contain the version and the mode. */
export function createBuildInfo(info: { version: string; mode: string; database: string }): Metric {
  const labels = Object.entries({ ...info, node: process.version }).map(([name, value]) => formatLabel(name, value));
  return {
    name: 'toolhost_build_info',
    help: 'Version and mode of the service; always 1.',
    type: 'gauge',
    merge: 'max',
    samples: [{ suffix: '', labels: labels.join(','), value: 1 }],
  };
}
