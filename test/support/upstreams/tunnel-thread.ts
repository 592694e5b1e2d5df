/** An egress proxy on its own thread, which forwards bytes even while the thread of the test is blocked. */
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { listenLocally } from './local-server.ts';

export type TunnelThread = {
  readonly port: number;
  /** Bytes for clients that the proxy has read, which includes all that clients have received. */
  readonly receivedBytes: number;
  /** Blocks this thread until so many bytes were forwarded to clients. */
  waitForBytes(bytes: number): void;
  close(): Promise<unknown>;
};

/** Indexes of the shared counterss. */
const [receivedIndex, forwardedIndex] = [0, 1];
const maxWaitMs = 20_000;

/** Starts the proxy. It connects to this machine, whatever the name of the destination is. */
export async function startTunnelThread(): Promise<TunnelThread> {
  const counters = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(import.meta.filename, { workerData: counters });
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  return {
    port,
    get receivedBytes() {
      return Atomics.load(counters, receivedIndex);
    },
    waitForBytes(bytes) {
      for (;;) {
        const forwardedBytes = Atomics.load(counters, forwardedIndex);
        if (forwardedBytes >= bytes) return;
        const result = Atomics.wait(counters, forwardedIndex, forwardedBytes, maxWaitMs);
        if (result === 'timed-out') throw new Error('The tunnel forwarded nothing.');
      }
    },
    close: () => worker.terminate(),
  };
}

function createTunnel(counters: Int32Array): Server {
  return createServer().on('connect', (request, client: Socket) => {
    const upstream = connect({ port: Number(request.url?.split(':').at(-1)), host: '127.0.0.1', noDelay: true });
    client.setNoDelay(true);
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    upstream.once('connect', () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    upstream.on('data', (data) => {
      Atomics.add(counters, receivedIndex, data.length);
      client.write(data, () => {
        Atomics.add(counters, forwardedIndex, data.length);
        Atomics.notify(counters, forwardedIndex);
      });
    });
    upstream.once('close', () => client.destroy());
    client.once('close', () => upstream.destroy()).pipe(upstream);
  });
}

if (!isMainThread && parentPort) {
  const { port } = await listenLocally(createTunnel(workerData as Int32Array));
  parentPort.postMessage(port);
}
