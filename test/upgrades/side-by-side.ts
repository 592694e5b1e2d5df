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
import { type Browser, createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { freshCall, freshRequest, loadPauseMs, retryUntilServed } from '../support/fresh-request.ts';
import { startAdversarialProvider } from '../support/oauth/adversarial-provider.ts';
import { startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { clientWithId, expectTokens, registerClient, type Tokens } from '../support/oauth/oauth-client.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { installPreviousVersion } from '../support/toolhost/previous-version.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { startRoundRobin } from '../support/upstreams/round-robin.ts';
import { useFixture } from '../support/use-fixtures.ts';

const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };

/** Configuration fields that the newer version has and the older one may not have, with an example value each. */
const laterFields: Json = { views: { reading: { tools: ['get'] } } };

/** Number of times that each kind of request must succeed during one step of the upgrade. */
const minSuccessesPerStep = 15;

const [, , commit] = process.argv;
if (commit === undefined) throw new Error('name the commit of the earlier version, such as v0.1.0');

describe(`version ${commit} and this one on one PostgreSQL database`, () => {
  const postgres = useFixture(startPostgres);
  const upstream = useFixture(startRecordingUpstream);
  const provider = useFixture(startAdversarialProvider);
  const identity = useFixture(startForgedTokenProvider);
  const proxy = useFixture(startRoundRobin);
  const previous = useFixture(async () => {
    const { program, remove } = await installPreviousVersion(commit);
    return { program, stop: remove };
  });
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-upgrade-'));
  let env: Record<string, string>;
  before(async () => {
    upstream.on('*', () => ({ body: { said: 'something' } }));
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
  after(() => rmSync(folder, { recursive: true, force: true }));

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
  async function isDatabaseTimeout(message: string): Promise<boolean> {
    const timeoutError =
      /the database does not (answer|respond)|lost while the change was stored|lost during the commit/i;
    if (!timeoutError.test(message)) return false;
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
  const untilServedInTime = <Result extends { status: number; text: string; headers: Headers | IncomingHttpHeaders }>(
    send: () => Promise<Result>,
  ) => retryUntilServed(send, ({ status, text }) => status === 429 || (status === 503 && isDatabaseTimeout(text)));

  async function startReplica(program?: string): Promise<Replica> {
    const PORT = String(await findFreePort());
    const child = await startChildToolhost({ ...env, PORT }, program);
    const url = `http://127.0.0.1:${PORT}`;
    started.push({ child, isOlder: program !== undefined });
    proxy.add(url);
    await proxy.waitForReadiness(url, true);
    return { child, url };
  }
  async function stopReplica({ child, url }: Replica): Promise<void> {
    await proxy.remove(url);
    assert.equal(await child.end(), 0, child.output());
    assert.doesNotMatch(child.output(), /"level":[56]0/);
  }

  /** Signs a person in at the dashboard, and returns the session cookie. */
  async function signIn(browser: Browser): Promise<string> {
    const { searchParams: sent } = getNextUrl(await browser.get(`${proxy.url}/login`));
    identity.setIdToken(sent.get('nonce') ?? assert.fail());
    const query = { code: 'of-the-provider', state: sent.get('state') ?? '', iss: identity.url };
    await browser.get(`${proxy.url}/login/callback?${new URLSearchParams(query)}`);
    return browser.cookies('127.0.0.1').get('toolhost-session') ?? assert.fail('no session');
  }

  /** Login requests are limited by address, and this test makes many. */
  let addresses = 0;
  const nextAddress = () => `198.51.${100 + Math.floor(++addresses / 250)}.${(addresses % 250) + 1}`;

  type Login = { clientId: string; tokens: Tokens };

  /** Performs a complete agent login at a server. Starts over if the database exceeded the older version's timeouts. */
  async function logIn(slug: string): Promise<Login> {
    try {
      return await logInOnce(slug);
    } catch (error) {
      if (!(await isDatabaseTimeout(String(error)))) throw error;
      return logIn(slug);
    }
  }

  async function logInOnce(slug: string): Promise<Login> {
    const client = await registerClient({ issuer: `${proxy.url}/mcp/${slug}`, address: nextAddress() });
    const person = createBrowser(nextAddress());
    const { url, verifier } = client.authorization();
    const departure = await person.press(await person.get(url), 'Allow and log in');
    const back = getNextUrl(await person.get(getNextUrl(await person.get(getNextUrl(departure)))));
    const redeemed = await client.redeem(back.searchParams.get('code') ?? '', verifier);
    return { clientId: client.id, tokens: expectTokens(redeemed) };
  }

  it('serve side by side without failing a call, login, change, or session, lose no call record, and allow going back', async () => {
    const old = await startReplica(previous.program);
    const session = await signIn(createBrowser());
    const asPerson = async (method: string, path: string, body?: Json): Promise<Json> => {
      const headers = { cookie: `toolhost-session=${session}`, origin: proxy.url, 'sec-fetch-site': 'same-origin' };
      const reply = await untilServedInTime(() =>
        freshRequest(`${proxy.url}/api/v1${path}`, { method, headers, ...(body && { body }) }),
      );
      assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}\n${logs()}`);
      return reply.body;
    };
    await asPerson('POST', '/servers', buildServerAt('stored', upstream.url, stored));
    await asPerson('PUT', '/servers/stored/secrets/TOKEN', { value: 'secret-0' });
    await asPerson('POST', '/servers', buildServerAt('changed', upstream.url, stored));
    const people = { authentication: { type: 'Bearer' }, oauth: provider.oauth() };
    await asPerson('POST', '/servers', buildServerAt('people', upstream.url, people));
    const { key } = await asPerson('POST', '/keys', { name: 'agent', scopes: ['call', 'manage'] });
    const agent = { key: String(key) };

    let over = false;
    const counts: Record<string, number> = {};
    const callCounts: Record<string, number> = {};
    /** Makes one call, which must succeed. */
    const call = async (slug: string, token: string) => {
      const reply = await untilServedInTime(() => freshCall(proxy.url, slug, { key: token }));
      assert.equal(reply.status, 200, `${reply.text}\n${logs()}`);
      assert.match(reply.text, /something/);
      callCounts[slug] = (callCounts[slug] ?? 0) + 1;
    };
    /** Repeats one kind of work until the upgrade is over. */
    const repeat = async (kind: string, work: (n: number) => Promise<void>) => {
      for (let n = 0; !over; n += 1) {
        await work(n);
        counts[kind] = (counts[kind] ?? 0) + 1;
        await delay(loadPauseMs);
      }
    };
    let lastStored = { secret: '', description: '' };
    const sharedLogin = await logIn('people');
    const load = Promise.all([
      repeat('calls', () => call('stored', agent.key)),
      repeat('keys', async (n) => {
        const created = await asPerson('POST', '/keys', { name: `key ${n}`, scopes: ['call'], servers: ['stored'] });
        await call('stored', String(created.key));
        await asPerson('DELETE', `/keys/${created.id}`);
      }),
      repeat('refreshed', async () => {
        const client = clientWithId(sharedLogin.clientId, {
          issuer: `${proxy.url}/mcp/people`,
          address: nextAddress(),
        });
        const refreshed = await untilServedInTime(() => client.refresh(sharedLogin.tokens.refresh_token));
        sharedLogin.tokens = expectTokens(refreshed);
        await call('people', sharedLogin.tokens.access_token);
      }),
      repeat('logins', async () => {
        await call('people', (await logIn('people')).tokens.access_token);
      }),
      repeat('changes', async (n) => {
        const [value, description] = [`secret-${n + 1}`, `Change ${n}`];
        const options = { ...agent, method: 'PATCH', body: { description } };
        const url = `${proxy.url}/api/v1/servers/changed`;
        const patched = await untilServedInTime(() => freshRequest(url, options));
        assert.equal(patched.status, 200, `${patched.text}\n${logs()}`);
        await asPerson('PUT', '/servers/changed/secrets/TOKEN', { value });
        lastStored = { secret: value, description };
      }),
      repeat('sessions', async () => {
        for (const path of ['/session', '/servers', '/servers/stored']) await asPerson('GET', path);
      }),
    ]);
    /** Waits until each kind of work has succeeded often with the current processes. */
    const waitForNextStep = async () => {
      const before = { ...counts };
      const kinds = ['calls', 'keys', 'refreshed', 'logins', 'changes', 'sessions'];
      const isDone = () => kinds.every((kind) => (counts[kind] ?? 0) >= (before[kind] ?? 0) + minSuccessesPerStep);
      while (!isDone() && !over) await delay(loadPauseMs);
    };
    const runNextStep = () => Promise.race([load, waitForNextStep()]);
    const running = new Set([old]);
    try {
      await runNextStep();
      const first = await startReplica();
      running.add(first);
      await runNextStep();
      await assertLaterFieldsRefused(agent.key, [old, first]);
      await stopReplica(old);
      running.delete(old);
      await runNextStep();
      // The older version starts on the database of the newer one again.
      const olderAgain = await startReplica(previous.program);
      running.add(olderAgain);
      await stopReplica(first);
      running.delete(first);
      await runNextStep();
    } finally {
      over = true;
      await Promise.allSettled([load]);
      for (const replica of running) await stopReplica(replica);
    }
    await load;
    for (const slug of ['stored', 'people']) {
      const records = await queryDatabase(`select id from calls where slug = $1 and outcome = 'ok'`, [slug]);
      assert.equal(records.length, callCounts[slug]);
    }
    const end = await startReplica();
    const { server } = await asPerson('GET', '/servers/changed');
    assert.equal((server as Json).description, lastStored.description);
    upstream.take();
    await freshCall(proxy.url, 'changed', agent);
    assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${lastStored.secret}`);
    await stopReplica(end);
  });

  /**
   * Asserts that the older version refuses data that only the newer one knows: a configuration with a field of a later
   * version, both an invented one and each of `laterFields`, and a key with an unknown restriction.
   */
  async function assertLaterFieldsRefused(key: string, [older, newer]: readonly [Replica, Replica]): Promise<void> {
    const headers = { host: new URL(proxy.url).host };
    const create = async (path: string, body: Json): Promise<Json> => {
      const reply = await freshRequest(`${newer.url}/api/v1${path}`, { key, headers, body });
      assert.equal(reply.status, 201, reply.text);
      return reply.body;
    };
    const schema = await freshRequest(`${older.url}/schema/server.json`, { headers });
    const known = Object.keys(schema.body.properties as Json);
    await create('/servers', buildServerAt('later', upstream.url, stored));
    const addField = `config = replace(config, '{"name"', '{"futuristic":1,"name"')`;
    await queryDatabase(`update servers set ${addField} where slug = 'later'`);
    const assertResponse = async (replica: Replica, slug: string, status: number, pattern: RegExp, token = key) => {
      await eventually(async () => {
        const reply = await freshCall(replica.url, slug, { key: token, headers });
        assert.equal(reply.status, status, reply.text);
        assert.match(reply.text, pattern);
      }, 20_000);
    };
    for (const replica of [older, newer]) await assertResponse(replica, 'later', 503, /futuristic/);
    for (const [field, value] of Object.entries(laterFields)) {
      const slug = `later-${field}`;
      const authentication = { type: 'Bearer', token: 'of-the-server' };
      await create('/servers', buildServerAt(slug, upstream.url, { authentication, [field]: value }));
      await assertResponse(newer, slug, 200, /something/);
      if (known.includes(field)) await assertResponse(older, slug, 200, /something/);
      else await assertResponse(older, slug, 503, new RegExp(field));
    }
    const limited = await create('/keys', { name: 'of a view', scopes: ['call'], views: ['later-views/reading'] });
    for (const replica of [older, newer]) await assertResponse(replica, 'stored', 403, /may not/, String(limited.key));
  }

  async function queryDatabase(text: string, values: unknown[] = []): Promise<Json[]> {
    const client = new pg.Client({ connectionString: env.DATABASE_URL });
    await client.connect();
    try {
      return (await client.query(text, values)).rows as Json[];
    } finally {
      await client.end();
    }
  }
});
