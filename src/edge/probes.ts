import type { Incoming } from '../http/incoming.ts';
import { routes } from '../routes.ts';

export type ProbeParts = {
  /** Resolves with undefined when the process can serve. */
  whyNotReady: () => Promise<string | undefined>;
  /** Called after every answer. */
  onAnswered: (status: number) => void;
};

/**
 * Answers the probes of supervisors and load balancers: whether the process lives, and whether it can serve.
 * Returns true if the request was a probe.
 */
export function answerProbe(
  { request: { method }, response, path, headers }: Incoming,
  { whyNotReady, onAnswered }: ProbeParts,
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const send = (code: number, status: string, reason?: string) => {
    response.writeHead(code, [...headers, 'Content-Type', 'application/json']).end(JSON.stringify({ status, reason }));
    onAnswered(code);
  };
  if (path === routes.livez) send(200, 'ok');
  else if (path === routes.readyz) {
    whyNotReady().then(
      (reason) => (reason === undefined ? send(200, 'ready') : send(503, 'not ready', reason)),
      () => send(503, 'not ready'),
    );
  } else return false;
  return true;
}
