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
  let left = Math.ceil(calls * share);
  for (let step = 0; step < histogram.length; step++) {
    left -= histogram[step] ?? 0;
    if (left <= 0) return step / stepsPerMs;
  }
  return histogram.length / stepsPerMs;
}

/** Idle connections, and due times of calls that wait for one. Used only at a fixed rate. */
const idle: ((dueAt: number) => void)[] = [];
const due: number[] = [];

function sendDue(): void {
  while (due.length > 0 && idle.length > 0) idle.pop()?.(due.shift() ?? performance.now());
}

function keepRate(perSecond: number): void {
  let nextAt = performance.now();
  setInterval(() => {
    for (const now = performance.now(); nextAt <= now && running; nextAt += 1000 / perSecond) due.push(nextAt);
    sendDue();
  }, 1);
}

/** Opens a connection that has at most one request in flight. */
function drive(): Socket {
  const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true });
  let sentAt = 0;
  let head = '';
  let missing = 0;
  const send = (dueAt: number) => {
    sentAt = dueAt;
    socket.write(request);
  };
  const next = () => {
    if (job.perSecond === undefined) send(performance.now());
    else {
      idle.push(send);
      sendDue();
    }
  };
  const finish = () => {
    const step = Math.min(Math.round((performance.now() - sentAt) * stepsPerMs), histogram.length - 1);
    histogram[step] = (histogram[step] ?? 0) + 1;
    calls++;
    if (running) next();
  };
  socket.on('connect', next);
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (missing === 0) {
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      if (!head.startsWith('HTTP/1.1 200')) failures++;
      missing = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0) - (head.length - end - 4);
      head = '';
    } else missing -= chunk.length;
    if (missing <= 0) {
      missing = 0;
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
const sockets = Array.from({ length: job.connections }, drive);
if (job.perSecond !== undefined) keepRate(job.perSecond);
setTimeout(() => {
  running = false;
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(JSON.stringify({ calls, seconds, bytes, failures, p50Ms: percentile(0.5), p99Ms: percentile(0.99) }));
  for (const socket of sockets) socket.destroy();
  process.exit();
}, job.seconds * 1000);
