import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, type OAuthClient } from '../support/oauth/oauth-client.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { createMovableClock, type MovableClock } from '../support/toolhost/movable-clock.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const replicaCount = 3;

/** A credential that is valid until a time or until it is ended. Times are those of the database. */
type Credential = { until: number; isOver: boolean };
type Key = Credential & { key: string };
type Code = Credential & { code: string; verifier: string };
type Tokens = Credential & { access: string; refresh: string };
type Session = Credential & { cookie: string };

const replica = fc.nat(replicaCount - 1);
const pick = fc.nat(5);
/** Kind of the next step, its replica, and the object that it changes. */
const steps = fc.array(
  fc.record({
    kind: fc.constantFrom(
      ...(['make key', 'log in', 'redeem', 'refresh', 'sign in'] as const),
      ...(['revoke key', 'revoke grant', 'sign out'] as const),
      ...(['check', 'check', 'check', 'pass', 'pass', 'set clock', 'set clock'] as const),
    ),
    at: replica,
    pick,
    // Sums of these leave much, little, or nothing of every lifetime. Between two polls, a replica measures the time
    // itself.
    pass: fc.constantFrom(35 * secondMs, 13 * minuteMs, 7 * hourMs + minuteMs, 40 * hourMs),
    ahead: fc.integer({ min: -hourMs, max: hourMs }),
    lifeS: fc.constantFrom(60, 1800, 90_000),
  }),
  { minLength: 10, maxLength: 30 },
);
type Step = (typeof steps extends fc.Arbitrary<infer All> ? All : never)[number];

/** Lifetimes of credentials in the product. */
const lifetimes = { code: minuteMs, access: hourMs, refresh: 30 * dayMs, session: 7 * dayMs };

describe('[find B1] replicas with arbitrarily wrong clocks', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const provider = fixtures.start(startForgedTokenProvider);
  let world: LoginWorld;
  let clock: MovableClock;
  let replicas: TestToolhost[];
  let slug: string;
  const ahead: number[] = Array.from({ length: replicaCount }, () => 0);
  /** Time of the database clock, which stands still except for `pass` steps. */
  let now = Date.now();
  fixtures.start(async () => {
    clock = await createMovableClock(database.url);
    await clock.stopAt(now);
    const env = {
      ...database.env,
      TRUSTED_PROXIES: '1',
      OIDC_ISSUER: provider.url,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
    };
    const getRuntimeOptions = (n: number) => ({ now: () => Date.now() + (ahead[n] ?? 0) });
    world = await startLoginWorld({ env, runtimeOptions: getRuntimeOptions(0) });
    const egressPorts = [...world.provider.ports, world.upstream.port];
    const others = [1, 2].map((n) => startToolhost({ env, egressPorts, runtimeOptions: getRuntimeOptions(n) }));
    replicas = [world.toolhost, ...(await Promise.all(others))];
    return { stop: () => Promise.all([world.stop(), ...replicas.slice(1).map((one) => one.stop())]) };
  });
  before(async () => {
    slug = await world.createServer();
  });

  const getReplica = (n: number) => replicas[n] as TestToolhost;
  const pollAll = () => Promise.all(replicas.map((one) => one.running.app.runner.onCommitted()));
  const isValid = (credential: Credential) => !credential.isOver && now < credential.until;

  /** Returns functions that perform and check the steps of one run of the property. */
  const startRun = async () => {
    const keys: Key[] = [];
    const codes: Code[] = [];
    const tokens: Tokens[] = [];
    const sessions: Session[] = [];
    const { id } = await world.registerClient(slug);
    const clients = replicas.map(({ url }) => clientWithId(id, { issuer: `${url}/mcp/${slug}` }));
    const getClient = (n: number) => clients[n] as OAuthClient;
    const pickOne = <Item>(items: Item[], n: number) => items[n % (items.length || 1)];
    const toTokens = (body: object): Tokens => {
      const { access_token: access, refresh_token: refresh } = body as { access_token: string; refresh_token: string };
      return { access, refresh, until: now + lifetimes.access, isOver: false };
    };
    const sessionStatus = async (n: number, { cookie }: Session) => {
      const headers = { cookie: `toolhost-session=${cookie}` };
      return (await fetch(`${getReplica(n).url}/api/v1/session`, { headers })).status;
    };

    async function check(n: number): Promise<void> {
      for (const key of keys) {
        const { status } = await getReplica(n).rest('GET', '/servers?limit=1', { key: key.key });
        assert.equal(status, isValid(key) ? 200 : 401, 'a key');
      }
      for (const one of tokens) {
        const { status } = await getReplica(n).rpc(slug, one.access, 'ping');
        assert.equal(status, isValid(one) ? 200 : 401, 'an access token');
      }
      for (const one of sessions) assert.equal(await sessionStatus(n, one), isValid(one) ? 200 : 401, 'a session');
    }

    const steps: Record<Step['kind'], (step: Step) => Promise<unknown>> = {
      async 'make key'({ at, lifeS }) {
        const body = { name: 'n', scopes: ['manage'], expires_in: lifeS };
        const made = await getReplica(at).rest('POST', '/keys', { body });
        keys.push({ key: String(made.body.key), until: now + lifeS * secondMs, isOver: false });
      },
      async 'revoke key'({ at, pick: n }) {
        const key = pickOne(keys, n);
        if (!key || key.isOver) return;
        const { status } = await getReplica(at).rest('DELETE', `/keys/key_${key.key.split('_')[1]}`);
        assert.equal(status, 200);
        key.isOver = true;
      },
      async 'log in'() {
        const { code, verifier } = await world.logIn(getClient(0));
        codes.push({ code, verifier, until: now + lifetimes.code, isOver: false });
      },
      async redeem({ at, pick: n }) {
        const code = pickOne(codes, n);
        if (!code || code.isOver) return;
        const reply = await getClient(at).redeem(code.code, code.verifier);
        assert.equal(reply.status, isValid(code) ? 200 : 400, `a code: ${reply.text}`);
        if (isValid(code)) tokens.push(toTokens(reply.body));
        code.isOver = true;
      },
      async refresh({ at, pick: n }) {
        const before = pickOne(tokens, n);
        if (!before || before.refresh === '' || before.isOver) return;
        const until = before.until - lifetimes.access + lifetimes.refresh;
        const reply = await getClient(at).refresh(before.refresh);
        assert.equal(reply.status, now < until ? 200 : 400, `a refresh token: ${reply.text}`);
        // The previous access token stays valid until its end. A second use of its refresh token would end both.
        before.refresh = '';
        if (reply.status === 200) tokens.push(toTokens(reply.body));
      },
      async 'revoke grant'({ at, pick: n }) {
        const one = pickOne(tokens, n);
        if (!one || one.refresh === '' || one.isOver) return;
        await getClient(at).revoke(one.refresh);
        // All tokens of a login end with it. The model only tracks those of one refresh.
        tokens.splice(0, tokens.length, ...tokens.filter((other) => other === one));
        one.isOver = true;
      },
      async 'sign in'({ at }) {
        const browser = createBrowser();
        const { searchParams } = getNextUrl(await browser.get(`${getReplica(at).url}/login`));
        provider.setIdToken(searchParams.get('nonce') ?? '', {});
        const back = new URL(`${getReplica(at).url}/login/callback`);
        const state = searchParams.get('state') ?? '';
        back.search = new URLSearchParams({ code: 'of-the-provider', state, iss: provider.url }).toString();
        assert.equal((await browser.get(back)).status, 302);
        const cookie = browser.cookies('127.0.0.1').get('toolhost-session') ?? assert.fail('no session');
        sessions.push({ cookie, until: now + lifetimes.session, isOver: false });
      },
      async 'sign out'({ at, pick: n }) {
        const session = pickOne(sessions, n);
        if (!session) return;
        const headers = { cookie: `toolhost-session=${session.cookie}`, 'sec-fetch-site': 'same-origin' };
        await fetch(`${getReplica(at).url}/logout`, { method: 'POST', headers, redirect: 'manual' });
        session.isOver = true;
      },
      check: ({ at }) => check(at),
      async pass({ pass }) {
        now += pass;
        await clock.stopAt(now);
      },
      async 'set clock'({ at, ahead: ms }) {
        ahead[at] = ms;
      },
    };
    return {
      async perform(step: Step) {
        await steps[step.kind](step);
        await pollAll();
      },
      async end() {
        for (const n of replicas.keys()) await check(n);
      },
    };
  };

  it('accept every valid credential and no revoked or expired one once each replica has polled', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const run = await startRun();
        for (const step of plan) await run.perform(step);
        await run.end();
      }),
      { numRuns: 12 },
    );
  });
});
