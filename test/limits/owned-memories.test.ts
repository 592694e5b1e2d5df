import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createOwnHosts } from '../../src/domain/http/own-hosts.ts';
import type { UpstreamRequest } from '../../src/domain/request/upstream-request.ts';
import { createOwnedMemory } from '../../src/domain/work/owned-memory.ts';
import { AppError } from '../../src/errors.ts';
import type { Called } from '../../src/gateway/callers/caller.ts';
import { createKnownCallers } from '../../src/gateway/callers/known-callers.ts';
import { createClientDocuments } from '../../src/oauth/clients/client-document.ts';
import { createUnsavedTokens } from '../../src/oauth/tokens/unsaved-tokens.ts';
import { Connections } from '../../src/outbound/connections.ts';
import type { Exchange, HttpClient } from '../../src/outbound/http-client.ts';

/** A memory of the process: it keeps the nth value of an owner, and says whether it still has it. */
type Memory = {
  keep(owner: string, n: number): unknown;
  has(owner: string, n: number): unknown;
  end?(): unknown;
};

const request: UpstreamRequest = {
  method: 'GET',
  origin: 'https://api.example',
  path: '/x',
  headers: [],
  body: undefined,
};
const aTool = { name: 'get' } as Called['tool'];
const aCaller = (id: string, network: string) => ({ id, network }) as Called['caller'];

/** Credentials that callers bring to one server of each workspace, each from an address of its own; see `known-callers.ts`. */
function knownCallers(isProven: boolean): Memory {
  const known = createKnownCallers(() => 0);
  const tools = new Map<string, Called['tool']>();
  const note = (owner: string, n: number, id: string, status: number) => {
    const tool = tools.get(owner) ?? { ...aTool };
    tools.set(owner, tool);
    const caller = { ...aCaller(id, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`), credential: known.find(id) };
    known.noteAnswer({ caller, tool, server: { workspaceId: owner } }, request, status);
  };
  return {
    keep(owner, n) {
      if (isProven && n === 0) note(owner, n, `${owner} bad`, 401);
      note(owner, n, `${owner} ${n}`, 200);
    },
    has: (owner, n) => known.find(`${owner} ${n}`)?.isProven === isProven,
  };
}

function upstreams(): Memory {
  const connections = new Connections({
    createMemory: createOwnedMemory,
    connectorOf: () => () => undefined,
    clock: () => 0,
    onUnasked: () => undefined,
    mostConnections: undefined,
  });
  const upstreamOf = (owner: string, n: number) => {
    const exchange = { workspaceId: owner, origin: `http://h${n}.example`, credentialHash: undefined } as Exchange;
    return connections.poolFor(exchange).upstream;
  };
  return {
    // A number of rests that no new upstream has.
    keep: (owner, n) => Object.assign(upstreamOf(owner, n), { rests: 7 }),
    has: (owner, n) => upstreamOf(owner, n).rests === 7,
  };
}

function clientDocuments(): Memory {
  let fetched = 0;
  const send: HttpClient['send'] = async ({ origin, path }) => {
    fetched++;
    const document = { client_id: origin + path, client_name: 'A client', redirect_uris: ['https://client.example/'] };
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(document)),
    } as Awaited<ReturnType<HttpClient['send']>>;
  };
  const ownHosts = createOwnHosts({ baseUrl: 'https://tools.example.com', mode: 'production', serverHosts: undefined });
  const documents = createClientDocuments({ send } as HttpClient, ownHosts);
  const find = (owner: string, n: number) => documents(owner).find(`https://client.example/${owner}/${n}`);
  return {
    keep: find,
    async has(owner, n) {
      const before = fetched;
      await find(owner, n);
      return fetched === before;
    },
  };
}

const tokens = { accessToken: 'x'.repeat(2000), refreshToken: undefined, expiresAt: undefined, scope: undefined };

function unsavedLogins(): Memory {
  const unsaved = createUnsavedTokens({ log: () => undefined });
  const grant = (owner: string, n: number) => ({ id: `${owner} ${n}`, tokens_version: 1, workspace_id: owner });
  const isDown = () => Promise.reject(new AppError('unavailable', 'the database does not answer'));
  return {
    keep: (owner, n) => unsaved.keep(grant(owner, n), tokens, isDown),
    has: (owner, n) => unsaved.find(grant(owner, n)) !== undefined,
    end: unsaved.close,
  };
}

function unsavedAnswers(): Memory {
  const { answers } = createUnsavedTokens({ log: () => undefined });
  return {
    keep: (owner, n) => answers.set(`${owner} ${n}`, { workspaceId: owner, tokens }),
    has: (owner, n) => answers.peek(`${owner} ${n}`) !== undefined,
  };
}

/**
 * Everything that a process remembers of tenants and strangers, and that is not read from the database; with a number
 * above its bound.
 */
const memories: [name: string, create: () => Memory, flood: number][] = [
  ['accepted credentials of callers', () => knownCallers(false), 30_000],
  ['proven credentials of callers', () => knownCallers(true), 30_000],
  ['upstreams', upstreams, 4000],
  ['documents of clients', clientDocuments, 2000],
  ['refreshed tokens that wait for the database', unsavedLogins, 20_000],
  ['answers of providers that wait to be passed on', unsavedAnswers, 20_000],
];

describe('[find A6] what a process remembers', () => {
  for (const [name, create, flood] of memories) {
    it(`of ${name}: a flood of one owner displaces its own`, async () => {
      const memory = create();
      for (let n = 0; n < 20; n++) await memory.keep('victim', n);
      for (let n = 0; n < flood; n++) await memory.keep('flooder', n);
      for (let n = 20; n < 40; n++) await memory.keep('victim', n);
      for (let n = 0; n < 40; n++) assert.ok(await memory.has('victim', n), `value ${n} of the victim`);
      await memory.end?.();
    });
  }
});
