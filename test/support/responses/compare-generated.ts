import { setImmediate as immediate } from 'node:timers/promises';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { createExchange } from '../upstreams/http-client.ts';
import { generateResponse, type RandomInt, splitRandomly } from './generate-response.ts';
import { mutateResponse } from './mutate-response.ts';
import {
  formatOutcome,
  getUndiciOutcome,
  isResponse,
  withoutFailureReason,
  withoutReasonPhrase,
} from './response-outcome.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { type ComparedResponse, undiciDifferences } from './undici-differences.ts';

/** Turns of the event loop after which a response that was sent has been read. */
const readingTurns = 10;
/** Repetitions after which a difference is not the effect of a busy machine. */
const maxAttempts = 4;
/** Added to the outcome of a response that is complete only when the connection ends. */
const atEnd = ' at the end of the connection';

type Sample = { method: 'GET' | 'HEAD' | 'POST'; bytes: string; pieces: readonly Buffer[] };

/** Sends one generated response to the HTTP client and to undici. Returns an unlisted difference. */
export async function compareGenerated(
  upstream: ScriptedUpstream,
  http: HttpClient,
  randomInt: RandomInt,
): Promise<(ComparedResponse & { pieces: readonly number[] }) | undefined> {
  const { method, bytes: validBytes } = generateResponse(randomInt, 'token');
  const bytes = randomInt(3) === 0 ? validBytes : mutateResponse(randomInt, validBytes);
  const sample = { method, bytes, pieces: splitRandomly(randomInt, bytes) };
  for (let attempt = 1; ; attempt++) {
    const compared = { bytes, ...(await observe(upstream, http, sample)) };
    if (isSame(compared, sample) || undiciDifferences.some(({ appliesTo }) => appliesTo(compared))) return undefined;
    if (attempt === maxAttempts) return { ...compared, pieces: sample.pieces.map(({ length }) => length) };
  }
}

function isSame({ ours, undici }: ComparedResponse, { pieces }: Sample): boolean {
  const [first, second] = [withoutFailureReason(ours), undici];
  return pieces.length > 1 ? withoutReasonPhrase(first) === withoutReasonPhrase(second) : first === second;
}

async function observe(upstream: ScriptedUpstream, http: HttpClient, { method, pieces }: Sample) {
  const body = method === 'POST' ? Buffer.from('{}') : undefined;
  const origin = `http://upstream.example:${upstream.port}`;
  const [ours, undici] = await Promise.all([
    watchEnd(upstream, pieces, (path) =>
      formatOutcome(http.send(createExchange(origin, { path, method, body, credentialHash: undefined }))),
    ),
    watchEnd(upstream, pieces, (path) => getUndiciOutcome(upstream.url, { path, method, body })),
  ]);
  return { ours, undici };
}

/** Ends the connection once the client had time to read the response, and notes if the client waited for that. */
async function watchEnd(
  upstream: ScriptedUpstream,
  pieces: readonly Buffer[],
  send: (path: string) => Promise<string>,
): Promise<string> {
  const { path, played } = upstream.prepare({ pieces });
  let isSettled = false;
  const sent = send(path).finally(() => {
    isSettled = true;
  });
  const socket = await played;
  for (let turns = 0; turns < readingTurns && !isSettled; turns++) await immediate();
  const suffix = isSettled ? '' : atEnd;
  socket.end();
  const outcome = await sent;
  return isResponse(outcome) ? outcome + suffix : outcome;
}
