/**
 * Load generator for machines without `wrk`. Raw keep-alive sockets send the same bytes again when a response is
 * complete, or at the rate `perSecond`. With a rate, a latency starts when the call was due, even if no connection was
 * free. The generator reads only the status and the Content-Length.
 * Usage: node bench/own-load.ts '{"port":…,"path":…,"headers":{…},"body":…,"seconds":…,"connections":…}'
 */
import { connect, type Socket } from 'node:net';

export type Job = {
  port: number;
  path: string;
  headers: Record<string, string>;
  body: string;
  seconds: number;
  connections: number;
  perSecond?: number;
};

const job = JSON.parse(process.argv[2] ?? '{}') as Job;
const lines = Object.entries(job.headers).map(([name, value]) => `${name}: ${value}\r\n`);
const request = Buffer.from(
  `POST ${job.path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(job.body)}\r\n\r\n${job.body}`,
);

/** Latencies in steps of 10 µs, up to 10 s. */
const histogram = new Uint32Array(1_000_000);
const stepsPerMs = 100;
let calls = 0;
let bytes = 0;
let failures = 0;
let running = true;

function percentile(share: number): number {
  let remaining = Math.ceil(calls * share);
  for (let step = 0; step < histogram.length; step++) {
    remaining -= histogram[step] ?? 0;
    if (remaining <= 0) return step / stepsPerMs;
  }
  return histogram.length / stepsPerMs;
}

/** Idle connections, and due times of calls that wait for one. Used only at a fixed rate. */
const idleSenders: ((dueAt: number) => void)[] = [];
const dueTimes: number[] = [];

function sendDueCalls(): void {
  while (dueTimes.length > 0 && idleSenders.length > 0) idleSenders.pop()?.(dueTimes.shift() ?? performance.now());
}

function startFixedRate(perSecond: number): void {
  let nextAt = performance.now();
  setInterval(() => {
    for (const now = performance.now(); nextAt <= now && running; nextAt += 1000 / perSecond) dueTimes.push(nextAt);
    sendDueCalls();
  }, 1);
}

/** Opens a connection that has at most one request in flight. */
function openConnection(): Socket {
  const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true });
  let requestDueAt = 0;
  let head = '';
  let remainingBytes = 0;
  const send = (dueAt: number) => {
    requestDueAt = dueAt;
    socket.write(request);
  };
  const sendNext = () => {
    if (job.perSecond === undefined) send(performance.now());
    else {
      idleSenders.push(send);
      sendDueCalls();
    }
  };
  const finish = () => {
    const step = Math.min(Math.round((performance.now() - requestDueAt) * stepsPerMs), histogram.length - 1);
    histogram[step] = (histogram[step] ?? 0) + 1;
    calls++;
    if (running) sendNext();
  };
  socket.on('connect', sendNext);
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (remainingBytes === 0) {
      head += chunk.toString('latin1');
      const headEnd = head.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      if (!head.startsWith('HTTP/1.1 200')) failures++;
      remainingBytes = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0) - (head.length - headEnd - 4);
      head = '';
    } else remainingBytes -= chunk.length;
    if (remainingBytes <= 0) {
      remainingBytes = 0;
      finish();
    }
  });
  socket.on('error', () => failures++);
  socket.on('close', () => {
    if (running) failures++;
  });
  return socket;
}

const startedAt = performance.now();
const sockets = Array.from({ length: job.connections }, openConnection);
if (job.perSecond !== undefined) startFixedRate(job.perSecond);
setTimeout(() => {
  running = false;
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(JSON.stringify({ calls, seconds, bytes, failures, p50Ms: percentile(0.5), p99Ms: percentile(0.99) }));
  for (const socket of sockets) socket.destroy();
  process.exit();
}, job.seconds * 1000);
