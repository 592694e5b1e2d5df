import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { listenLocally } from './local-server.ts';

/**
 * An ordinary load balancer. It checks readiness periodically and distributes requests evenly among the ready targets.
 */
export type RoundRobin = {
  url: string;
  add(target: string): void;
  /** Stops sending requests to the target. Resolves when its current requests are complete. */
  remove(target: string): Promise<void>;
  /** Resolves when the target has reported this readiness. */
  waitForReadiness(target: string, isReady: boolean): Promise<void>;
  close(): Promise<void>;
};

const probeMs = 100;

export async function startRoundRobin(): Promise<RoundRobin> {
  const targets = new Map<string, boolean>();
  const activeResponses = new Map<string, Set<ServerResponse>>();
  let nextIndex = 0;
  let isClosed = false;

  const server = createServer((incoming, outgoing) => {
    const readyTargets = [...targets].filter(([, isReady]) => isReady).map(([target]) => target);
    const target = readyTargets[nextIndex++ % readyTargets.length];
    if (target === undefined) {
      outgoing.writeHead(502).end();
      return;
    }
    const { method, headers } = incoming;
    const forwarded = request(`${target}${incoming.url}`, { method, headers }, (upstreamResponse) => {
      outgoing.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
      upstreamResponse.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(forwarded);
    const responses = activeResponses.get(target) ?? new Set();
    activeResponses.set(target, responses.add(outgoing));
    outgoing.once('close', () => responses.delete(outgoing));
  });

  async function probe(): Promise<void> {
    while (!isClosed) {
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

  const { url, close } = await listenLocally(server);
  const probeLoop = probe();
  return {
    url,
    add: (target) => void targets.set(target, false),
    async remove(target) {
      targets.delete(target);
      await Promise.all([...(activeResponses.get(target) ?? [])].map((response) => once(response, 'close')));
    },
    async waitForReadiness(target, isReady) {
      while (targets.get(target) !== isReady) await delay(probeMs);
    },
    async close() {
      isClosed = true;
      await probeLoop;
      await close();
    },
  };
}
