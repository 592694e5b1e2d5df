import type { IncomingMessage, ServerResponse } from 'node:http';
import { routes } from '../routes.ts';

export type ProbeParts = {
  isReady: () => Promise<boolean>;
  /** Told of every answer. */
  onAnswered: (status: number) => void;
};

/**
 * What supervisors and load balancers ask every few seconds: whether the process lives, and whether it can serve.
 * `headers`, names and values in turn, belong to the answer. True when it was one of these.
 */
export function answerProbe(
  { method }: IncomingMessage,
  response: ServerResponse,
  path: string,
  headers: readonly string[],
  { isReady, onAnswered }: ProbeParts,
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const send = (code: number, status: string) => {
    response.writeHead(code, [...headers, 'Content-Type', 'application/json']).end(JSON.stringify({ status }));
    onAnswered(code);
  };
  if (path === routes.livez) send(200, 'ok');
  else if (path === routes.readyz) {
    isReady().then(
      (ready) => (ready ? send(200, 'ready') : send(503, 'not ready')),
      () => send(503, 'not ready'),
    );
  } else return false;
  return true;
}
