import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * An ordinary load balancer. It checks readiness periodically and distributes requests evenly among the ready targets.
 */
export type RoundRobin = {
  url: string;
  add(target: string): void;
  /** Stops sending requests to the target. Resolves when its current requests are complete. */
  remove(target: string): Promise<void>;
  /** Resolves when the target has reported this readiness. */
  seen(target: string, ready: boolean): Promise<void>;
  close(): Promise<void>;
};

const probeMs = 100;

export async function startRoundRobin(): Promise<RoundRobin> {
  const targets = new Map<string, boolean>();
  const underWay = new Map<string, Set<ServerResponse>>();
  let turn = 0;
  let closed = false;

  const server = createServer((incoming, outgoing) => {
    const ready = [...targets].filter(([, isReady]) => isReady).map(([target]) => target);
    const target = ready[turn++ % ready.length];
    if (target === undefined) {
      outgoing.writeHead(502).end();
      return;
    }
    const { method, headers } = incoming;
    const passed = request(`${target}${incoming.url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(passed);
    const answers = underWay.get(target) ?? new Set();
    underWay.set(target, answers.add(outgoing));
    outgoing.once('close', () => answers.delete(outgoing));
  });

  async function probe(): Promise<void> {
    while (!closed) {
      for (const target of targets.keys()) {
        const isReady = await fetch(`${target}/readyz`).then(
          ({ status }) => status === 200,
          () => false,
        );
        if (targets.has(target)) targets.set(target, isReady);
      }
      await delay(probeMs);
    }
  }

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const probing = probe();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: (target) => void targets.set(target, false),
    async remove(target) {
      targets.delete(target);
      await Promise.all([...(underWay.get(target) ?? [])].map((answer) => once(answer, 'close')));
    },
    async seen(target, ready) {
      while (targets.get(target) !== ready) await delay(probeMs);
    },
    async close() {
      closed = true;
      await probing;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
