/**
 * Runs an earlier version and these sources side by side on one PostgreSQL database: `node
 * test/upgrades/side-by-side.ts COMMIT`. This is a script because the earlier version must be a release.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Browser, createBrowser, next } from '../support/browser/browser.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { freshCall, freshRequest, loadPauseMs, untilServed } from '../support/fresh-request.ts';
import { type ForgingProvider, startForgingProvider } from '../support/oauth/forging-provider.ts';
import { type HostileProvider, startHostileProvider } from '../support/oauth/hostile-provider.ts';
import { clientWithId, registerClient, type Tokens, tokensOf } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { installPreviousVersion, type PreviousVersion } from '../support/toolhost/previous-version.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { freePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { type RoundRobin, startRoundRobin } from '../support/upstreams/round-robin.ts';

const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };
const login = { authentication: { type: 'Bearer' } };
const ready = { authentication: { type: 'Bearer', token: 'of-the-server' } };

/** Configuration fields that the newer version has and the older one may not have, with an example value each. */
const laterFields: Json = { views: { reading: { tools: ['get'] } } };

/** Number of times that each kind of request must succeed during one step of the upgrade. */
const timesInStep = 15;

const [, , commit] = process.argv;
if (commit === undefined) throw new Error('name the commit of the earlier version, such as v0.1.0');

describe(`version ${commit} and this one on one PostgreSQL database`, () => {
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let provider: HostileProvider;
  let identity: ForgingProvider;
  let previous: PreviousVersion;
  let proxy: RoundRobin;
  let folder: string;
  let env: Record<string, string>;
  before(async () => {
    [postgres, upstream, provider, identity, previous, proxy] = await Promise.all([
      startPostgres(),
      startRecordingUpstream(),
      startHostileProvider(),
      startForgingProvider(),
      installPreviousVersion(commit),
      startRoundRobin(),
    ]);
    upstream.on('*', () => ({ body: { said: 'something' } }));
    folder = mkdtempSync(join(tmpdir(), 'toolhost-upgrade-'));
    const ports = [upstream.port, ...provider.ports];
    env = {
      DATABASE_URL: await postgres.createDatabase(),
      MASTER_KEY: randomBytes(32).toString('base64'),
      BASE_URL: proxy.url,
      DATA_DIR: folder,
      OIDC_ISSUER: identity.url,
      OIDC_CLIENT_ID: identity.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
      EGRESS_ALLOW: ports.map((port) => `127.0.0.1:${port}`).join(','),
      CALLS_PER_SECOND: '0',
      TRUSTED_PROXIES: '1',
      LOG_LEVEL: 'warn',
    };
  });
  after(async () => {
    await Promise.all([postgres?.stop(), upstream?.close(), provider?.close(), identity?.close(), proxy?.close()]);
    await previous?.remove();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  type Replica = { child: ChildToolhost; url: string };
  /** Every process that was started, including those that have ended. */
  const started: { child: ChildToolhost; isOlder: boolean }[] = [];
  const logs = () => started.map(({ child }) => child.output()).join('\n');

  /**
   * Returns true if the older version refused a request because the database exceeded its timeouts, which cannot be
   * configured. A busy machine may cause that. Other failures have the same response, and only the log distinguishes
   * them. The log has one line per minute for such failures, so after a timeout the other failures of that minute look
   * the same.
   */
  async function isShortOfTime(said: string): Promise<boolean> {
    if (!/the database does not (answer|respond)|lost while the change was stored|lost during the commit/i.test(said))
      return false;
    const older = started.filter(({ isOlder }) => isOlder);
    // The log line may arrive after the response.
    return eventually(() => {
      const output = older.map(({ child }) => child.output()).join('\n');
      assert.match(output, /"fault":"unavailable"/, logs());
      return /"reason":"(Connection terminated|canceling statement)/.test(output);
    });
  }
  /**
   * Retries only if the workspace sent too many requests, or if the database exceeded the timeouts of the older
   * version.
   */
  const served = <Said extends { status: number; text: string; headers: Headers | IncomingHttpHeaders }>(
    ask: () => Promise<Said>,
  ) => untilServed(ask, ({ status, text }) => status === 429 || (status === 503 && isShortOfTime(text)));

  async function startReplica(program?: string): Promise<Replica> {
    const PORT = String(await freePort());
    const child = await startChildToolhost({ ...env, PORT }, program);
    const url = `http://127.0.0.1:${PORT}`;
    started.push({ child, isOlder: program !== undefined });
    proxy.add(url);
    await proxy.seen(url, true);
    return { child, url };
  }
  async function leave({ child, url }: Replica): Promise<void> {
    await proxy.remove(url);
    assert.equal(await child.end(), 0, child.output());
    assert.doesNotMatch(child.output(), /"level":[56]0/);
  }

  /** Signs a person in at the dashboard, and returns the session cookie. */
  async function signIn(browser: Browser): Promise<string> {
    const { searchParams: sent } = next(await browser.get(`${proxy.url}/login`));
    identity.issue(sent.get('nonce') ?? assert.fail());
    const query = { code: 'of-the-provider', state: sent.get('state') ?? '', iss: identity.url };
    await browser.get(`${proxy.url}/login/callback?${new URLSearchParams(query)}`);
    return browser.cookies('127.0.0.1').get('toolhost-session') ?? assert.fail('no session');
  }

  /** Login requests are limited by address, and this test makes many. */
  let addresses = 0;
  const nextAddress = () => `198.51.${100 + Math.floor(++addresses / 250)}.${(addresses % 250) + 1}`;

  type Login = { clientId: string; tokens: Tokens };

  /**
   * Performs a complete agent login at a server. Starts over if the database exceeded the timeouts of the older
   * version.
   */
  async function logIn(slug: string): Promise<Login> {
    for (;;) {
      try {
        return await logInOnce(slug);
      } catch (error) {
        if (!(await isShortOfTime(String(error)))) throw error;
      }
    }
  }

  async function logInOnce(slug: string): Promise<Login> {
    const client = await registerClient({ issuer: `${proxy.url}/mcp/${slug}`, address: nextAddress() });
    const person = createBrowser(nextAddress());
    const { url, verifier } = client.authorization();
    const departure = await person.press(await person.get(url), 'Allow and log in');
    const back = next(await person.get(next(await person.get(next(departure)))));
    const redeemed = await client.redeem(back.searchParams.get('code') ?? '', verifier);
    return { clientId: client.id, tokens: tokensOf(redeemed) };
  }

  it('serve side by side without failing a call, login, change, or session, lose no call record, and allow going back', async () => {
    const old = await startReplica(previous.program);
    const session = await signIn(createBrowser());
    const asPerson = async (method: string, path: string, body?: Json): Promise<Json> => {
      const headers = { cookie: `toolhost-session=${session}`, origin: proxy.url, 'sec-fetch-site': 'same-origin' };
      const reply = await served(() =>
        freshRequest(`${proxy.url}/api/v1${path}`, { method, headers, ...(body && { body }) }),
      );
      assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}\n${logs()}`);
      return reply.body;
    };
    await asPerson('POST', '/servers', serverAt('stored', upstream.url, stored));
    await asPerson('PUT', '/servers/stored/secrets/TOKEN', { value: 'secret-0' });
    await asPerson('POST', '/servers', serverAt('changed', upstream.url, stored));
    await asPerson('POST', '/servers', serverAt('people', upstream.url, { ...login, oauth: provider.oauth() }));
    const { key } = await asPerson('POST', '/keys', { name: 'agent', scopes: ['call', 'manage'] });
    const agent = { key: String(key) };

    let over = false;
    const counts: Record<string, number> = {};
    const callsOf: Record<string, number> = {};
    /** Makes one call, which must succeed. */
    const call = async (slug: string, token: string) => {
      const reply = await served(() => freshCall(proxy.url, slug, { key: token }));
      assert.equal(reply.status, 200, `${reply.text}\n${logs()}`);
      assert.match(reply.text, /something/);
      callsOf[slug] = (callsOf[slug] ?? 0) + 1;
    };
    /** Repeats one kind of work until the upgrade is over. */
    const keep = async (kind: string, work: (n: number) => Promise<void>) => {
      for (let n = 0; !over; n += 1) {
        await work(n);
        counts[kind] = (counts[kind] ?? 0) + 1;
        await delay(loadPauseMs);
      }
    };
    let last = { secret: '', description: '' };
    const kept = await logIn('people');
    const load = Promise.all([
      keep('calls', () => call('stored', agent.key)),
      keep('keys', async (n) => {
        const made = await asPerson('POST', '/keys', { name: `key ${n}`, scopes: ['call'], servers: ['stored'] });
        await call('stored', String(made.key));
        await asPerson('DELETE', `/keys/${made.id}`);
      }),
      keep('refreshed', async () => {
        const client = clientWithId(kept.clientId, { issuer: `${proxy.url}/mcp/people`, address: nextAddress() });
        kept.tokens = tokensOf(await served(() => client.refresh(kept.tokens.refresh_token)));
        await call('people', kept.tokens.access_token);
      }),
      keep('logins', async () => {
        const { tokens: own } = await logIn('people');
        await call('people', own.access_token);
      }),
      keep('changes', async (n) => {
        const [value, description] = [`secret-${n + 1}`, `Change ${n}`];
        const path = `${proxy.url}/api/v1/servers/changed`;
        const patched = await served(() => freshRequest(path, { ...agent, method: 'PATCH', body: { description } }));
        assert.equal(patched.status, 200, `${patched.text}\n${logs()}`);
        await asPerson('PUT', '/servers/changed/secrets/TOKEN', { value });
        last = { secret: value, description };
      }),
      keep('sessions', async () => {
        await asPerson('GET', '/session');
        await asPerson('GET', '/servers');
        await asPerson('GET', '/servers/stored');
      }),
    ]);
    /** Waits until each kind of work has succeeded often with the current processes. */
    const settled = async () => {
      const before = { ...counts };
      const isDone = () =>
        ['calls', 'keys', 'refreshed', 'logins', 'changes', 'sessions'].every(
          (kind) => (counts[kind] ?? 0) >= (before[kind] ?? 0) + timesInStep,
        );
      while (!isDone() && !over) await delay(loadPauseMs);
    };
    const running = new Set([old]);
    try {
      await Promise.race([load, settled()]);
      const first = await startReplica();
      running.add(first);
      await Promise.race([load, settled()]);
      await handleLaterFields(agent.key, [old, first]);
      await leave(old);
      running.delete(old);
      await Promise.race([load, settled()]);
      // The older version starts on the database of the newer one again.
      const again = await startReplica(previous.program);
      running.add(again);
      await leave(first);
      running.delete(first);
      await Promise.race([load, settled()]);
    } finally {
      over = true;
      await Promise.allSettled([load]);
      for (const replica of running) await leave(replica);
    }
    await load;
    assert.equal((await recordsOf('stored')).length, callsOf.stored);
    assert.equal((await recordsOf('people')).length, callsOf.people);
    const end = await startReplica();
    const { server } = await asPerson('GET', '/servers/changed');
    assert.equal((server as Json).description, last.description);
    upstream.take();
    await freshCall(proxy.url, 'changed', agent);
    assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${last.secret}`);
    await leave(end);
  });

  /**
   * Asserts that the older version refuses data that only the newer one knows: a configuration with a field of a later
   * version, both an invented one and each of `laterFields`, and a key with an unknown restriction.
   */
  async function handleLaterFields(key: string, [older, newer]: readonly [Replica, Replica]): Promise<void> {
    const headers = { host: new URL(proxy.url).host };
    const make = async (path: string, body: Json): Promise<Json> => {
      const reply = await freshRequest(`${newer.url}/api/v1${path}`, { key, headers, body });
      assert.equal(reply.status, 201, reply.text);
      return reply.body;
    };
    const known = Object.keys(
      (await freshRequest(`${older.url}/schema/server.json`, { headers })).body.properties as Json,
    );
    await make('/servers', serverAt('later', upstream.url, stored));
    await inDatabase(
      `update servers set config = replace(config, '{"name"', '{"futuristic":1,"name"') where slug = 'later'`,
    );
    const answers = async (replica: Replica, slug: string, status: number, said: RegExp, token = key) => {
      await eventually(async () => {
        const reply = await freshCall(replica.url, slug, { key: token, headers });
        assert.equal(reply.status, status, reply.text);
        assert.match(reply.text, said);
      }, 20_000);
    };
    for (const replica of [older, newer]) await answers(replica, 'later', 503, /futuristic/);
    for (const [field, value] of Object.entries(laterFields)) {
      const slug = `later-${field}`;
      await make('/servers', serverAt(slug, upstream.url, { ...ready, [field]: value }));
      await answers(newer, slug, 200, /something/);
      if (known.includes(field)) await answers(older, slug, 200, /something/);
      else await answers(older, slug, 503, new RegExp(field));
    }
    const limited = await make('/keys', { name: 'of a view', scopes: ['call'], views: ['later-views/reading'] });
    for (const replica of [older, newer]) await answers(replica, 'stored', 403, /may not/, String(limited.key));
  }

  async function inDatabase(text: string, values: unknown[] = []): Promise<Json[]> {
    const client = new pg.Client({ connectionString: env.DATABASE_URL });
    await client.connect();
    try {
      return (await client.query(text, values)).rows as Json[];
    } finally {
      await client.end();
    }
  }

  const recordsOf = (slug: string) => inDatabase(`select id from calls where slug = $1 and outcome = 'ok'`, [slug]);
});
