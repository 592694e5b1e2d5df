import type { Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import type { OutboundError } from '@toolhost/errors/errors';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { blockThread } from '../block-thread.ts';
import { createRandomInt } from '../seeded-numbers.ts';
import { createExchange } from '../upstreams/http-client.ts';
import { type GeneratedResponse, generateResponse, pick, type RandomInt, splitRandomly } from './generate-response.ts';
import { formatResponse } from './response-outcome.ts';
import type { Script, ScriptedUpstream } from './scripted-upstream.ts';

/** Marks all unsolicited bytes. */
const plantedText = 'planted';
const plantedResponse = (headers = '') =>
  `HTTP/1.1 200 OK\r\n${headers}x-token: ${plantedText}\r\ncontent-length: 7\r\n\r\n${plantedText}`;

/** Bytes that an upstream sends although no request is pending. */
const unsolicitedBytes = [
  plantedResponse(),
  plantedResponse() + plantedResponse(),
  plantedResponse('connection: close\r\n'),
  `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\n${plantedText}\r\n0\r\n\r\n`,
  'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n',
  'HTTP/1.1 2',
  `HTTP/1.1 103 Early Hints\r\nlink: </${plantedText}>\r\n\r\n`,
  'HTTP/1.1 100 Continue\r\n\r\n',
  `HTTP/1.1 408 Request Timeout\r\ncontent-length: 7\r\n\r\n${plantedText}`,
  '\r\n',
  plantedText,
];

/** Misbehavior of an upstream after or within one response. */
const misbehaviors = ['same packet', 'later', 'idle', 'idle and busy', 'short length', 'cut off', 'canceled'] as const;
type Misbehavior = (typeof misbehaviors)[number];

/** State that the sessions of a run share. */
export type IsolationRun = {
  upstream: ScriptedUpstream;
  http: HttpClient;
  /** Advances the clock of the HTTP client, so that the quiet period of all connections is over. */
  endQuietPeriods: () => void;
  /** Makes the HTTP client forget that upstreams sent unsolicited bytes. */
  forgetUnsolicited: () => void;
  /** Number of exchanges left. */
  remaining: number;
  /** Unique number of the next exchange or session. */
  next: number;
  /** Caller of each connection. */
  callers: WeakMap<Socket, Caller>;
  /** Exchanges that got bytes that are not theirs, failed although their own response was complete, or shared a connection. */
  mismatches: string[];
};

/** Requests that may share connections. */
type Caller = {
  workspaceId: string;
  credentialHash: string;
  origin: string;
  /** Misbehavior of the upstream in the previous exchanges. */
  previous: Misbehavior | undefined;
};

/** Number of exchanges after which an upstream without unsolicited bytes is trusted. */
const trustingExchanges = 110;
/** Time in which the kernel delivers bytes that were sent. */
const deliveryMs = 2;
/** Turns of the event loop in which the client reads what has arrived, wherever in a turn they begin. */
const readingTurns = 3;

/**
 * Sends a few hundred exchanges to an upstream that nothing is known about. HTTP/1.1 does not identify the request of a
 * response, so unsolicited bytes are only sent while no request of their connection is pending: either with the end of
 * a response, or while all connections of a caller are idle.
 */
export async function runIsolationSession(run: IsolationRun, randomInt: RandomInt): Promise<void> {
  const number = run.next++;
  const origin = `http://upstream-${number}.example:${run.upstream.port}`;
  const callers = Array.from({ length: 1 + randomInt(3) }, (_, index): Caller => {
    return { workspaceId: `w-${number}-${index % 2}`, credentialHash: `c-${index}`, origin, previous: undefined };
  });
  const warmUps = randomInt(4) === 0 ? trustingExchanges : 0;
  for (let n = 0; n < warmUps; n++) await runBatch(run, randomInt, callers[0] as Caller, 1, []);
  // The order in which the callers continue does not influence what each of them does.
  const ownRandomInts = callers.map(() => createRandomInt(randomInt(2 ** 31)));
  const rarity = pick(randomInt, [3, 10, 40]);
  await Promise.all(
    callers.map(async (caller, index) => {
      const ownRandomInt = ownRandomInts[index] as RandomInt;
      for (let batches = 20 + ownRandomInt(40); batches > 0 && run.remaining > 0; batches--) {
        const allowed = ownRandomInt(rarity) === 0 ? misbehaviors : [];
        await runBatch(run, ownRandomInt, caller, 1 + ownRandomInt(4), allowed);
        if (ownRandomInt(30) === 0) run.forgetUnsolicited();
      }
    }),
  );
}

/** Sends exchanges of one caller simultaneously, and waits until the upstream has sent everything. */
async function runBatch(
  run: IsolationRun,
  randomInt: RandomInt,
  caller: Caller,
  size: number,
  allowed: readonly Misbehavior[],
): Promise<void> {
  if (randomInt(50) > 0) run.endQuietPeriods();
  const misbehavior = allowed.length > 0 ? pick(randomInt, allowed) : undefined;
  // Bytes after a response would be sent while the connection may already carry another request of the batch.
  const exchanges = misbehavior === 'later' || misbehavior === 'short length' ? 1 : size;
  run.remaining -= exchanges;
  const sockets = await Promise.all(
    Array.from({ length: exchanges }, (_, index) =>
      runExchange(run, randomInt, caller, index === 0 ? misbehavior : undefined),
    ),
  );
  caller.previous = misbehavior;
  if (misbehavior === undefined) return;
  run.endQuietPeriods();
  const isIdle = misbehavior === 'idle' || misbehavior === 'idle and busy';
  for (const socket of sockets)
    if (isIdle && socket?.writable) socket.write(pick(randomInt, unsolicitedBytes), 'latin1');
  // The kernel of a busy machine delivers bytes a moment after they were sent, and only then are they unsolicited.
  blockThread(deliveryMs);
  // Otherwise the next exchange is sent in this turn of the event loop.
  if (misbehavior === 'idle') await waitTurns(readingTurns);
}

/** Sends an exchange and checks its outcome. Returns the connection of the upstream, if the request arrived. */
async function runExchange(
  run: IsolationRun,
  randomInt: RandomInt,
  caller: Caller,
  misbehavior: Misbehavior | undefined,
): Promise<Socket | undefined> {
  const number = run.next++;
  const token = `token-${number}`;
  const plan = planResponse(randomInt, token, misbehavior);
  const { path, started, played } = run.upstream.prepare(plan.script);
  const cancelTurns = randomInt(5);
  const registerCancel = (cancel: () => void) => {
    if (misbehavior === 'canceled') void started.then(() => waitTurns(cancelTurns)).then(cancel);
  };
  const { method } = plan;
  const { previous, ...sender } = caller;
  const request = { ...sender, path, method, body: method === 'POST' ? '{}' : undefined, registerCancel };
  const sent = run.http.send(createExchange(caller.origin, request));
  const fault = await sent.then(
    (response) => findFault(response, token, plan),
    (error: OutboundError) => (plan.mayFail ? undefined : `failed: ${error.reason} (${error.message})`),
  );
  // A request of a failed exchange may not have been sent.
  const socket = fault === undefined ? await played : undefined;
  const sharedFault = socket && isOfOtherCaller(run, socket, caller) ? 'shares a connection of another caller' : fault;
  if (sharedFault === undefined) return socket;
  const events = `${misbehavior ?? 'no misbehavior'} after ${previous ?? 'none'}`;
  run.mismatches.push(`exchange ${number} of ${caller.origin}, ${events}: ${sharedFault}`);
  return undefined;
}

/** Notes the caller of a connection. Returns true if it had another one before. */
function isOfOtherCaller({ callers }: IsolationRun, socket: Socket, caller: Caller): boolean {
  const known = callers.get(socket) ?? caller;
  callers.set(socket, known);
  return known !== caller;
}

/** A script, and the response that the caller must receive. */
type Plan = {
  script: Script;
  method: GeneratedResponse['method'];
  status: number;
  body: string;
  /** True if the exchange may fail, or end with a part of the body. */
  mayFail: boolean;
};

function planResponse(randomInt: RandomInt, token: string, misbehavior: Misbehavior | undefined): Plan {
  const generated = generateResponse(randomInt, token);
  const { method, status, body, bytes, endsWithConnection } = generated;
  const plan = { method, status, body, mayFail: misbehavior === 'canceled' };
  const unsolicited = pick(randomInt, unsolicitedBytes);
  if (misbehavior === 'short length') {
    const text = `HTTP/1.1 200 OK\r\nx-token: ${token}\r\ncontent-length: 10\r\n\r\n0123456789${unsolicited}`;
    const script = { pieces: splitRandomly(randomInt, text) };
    return { ...plan, method: 'GET', status: 200, body: '0123456789', script };
  }
  if (misbehavior === 'cut off') {
    const pieces = splitRandomly(randomInt, bytes.slice(0, randomInt(bytes.length)));
    return { ...plan, mayFail: true, script: { pieces, ending: 'close' } };
  }
  if (endsWithConnection) return { ...plan, script: { pieces: splitRandomly(randomInt, bytes), ending: 'close' } };
  if (misbehavior === 'same packet')
    return { ...plan, script: { pieces: [Buffer.from(bytes + unsolicited, 'latin1')] } };
  const pieces = splitRandomly(randomInt, bytes);
  if (misbehavior === 'later') pieces.push(...emptyPieces(randomInt(5)), ...splitRandomly(randomInt, unsolicited));
  return { ...plan, script: { pieces } };
}

/** Returns pieces that only let turns of the event loop pass. */
const emptyPieces = (count: number) => Array.from({ length: count }, () => Buffer.alloc(0));

async function waitTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await immediate();
}

/** Returns how a response differs from the own response of its exchange. */
function findFault(response: UpstreamResponse, token: string, { status, body, mayFail }: Plan): string | undefined {
  const { headers } = response;
  const received = response.body.toString('latin1');
  const isComplete = mayFail ? body.startsWith(received) : received === body;
  const hasForeignHeader = /planted|token-/.test(JSON.stringify({ ...headers, 'x-token': '' }));
  if (response.status === status && isComplete && headers['x-token'] === token && !hasForeignHeader) return undefined;
  return `received ${formatResponse(response)}`;
}
