import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, type OAuthClient, tokensOf } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { operate } from '../support/toolhost/operate.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const hour = 3_600_000;
/** How soon a change must count on every replica. */
const soonMs = 5000;

describe('[find B1] replicas on one PostgreSQL whose clocks are hours apart', () => {
  let postgres: TestPostgres;
  let world: LoginWorld;
  let replicas: TestToolhost[];
  const ahead = [0, hour, -hour];
  before(async () => {
    postgres = await startPostgres();
    const env = {
      DATABASE_URL: await postgres.createDatabase(),
      MASTER_KEY: randomBytes(32).toString('base64'),
      TRUSTED_PROXIES: '1',
    };
    const surroundingsOf = (n: number) => ({ now: () => Date.now() + (ahead[n] ?? 0) });
    world = await startLoginWorld({ env, surroundings: surroundingsOf(0) });
    const egress = [...world.provider.ports, world.upstream.port];
    const others = [1, 2].map((n) => startToolhost({ env, egress, surroundings: surroundingsOf(n) }));
    replicas = [world.toolhost, ...(await Promise.all(others))];
  });
  afterEach(() => {
    [ahead[0], ahead[1], ahead[2]] = [0, hour, -hour];
  });
  after(async () => {
    await Promise.all(replicas?.slice(1).map((replica) => replica.stop()) ?? []);
    await world?.stop();
    await postgres.stop();
  });

  /** Every clock jumps by two hours, some forward and some back. */
  const step = () => {
    for (const [n, ms] of ahead.entries()) ahead[n] = ms > 0 ? ms - 2 * hour : ms + 2 * hour;
  };
  const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };
  const text = async (replica: TestToolhost, slug: string, token: string) =>
    (await replica.callTool(slug, token, 'get')).content[0]?.text ?? '';
  /** Holds on every replica once it has looked, which it does every second. */
  const everywhere = (check: (replica: TestToolhost) => Promise<void>) =>
    Promise.all(
      replicas.map(async (replica) => {
        await replica.running.app.runner.onCommitted();
        await check(replica);
      }),
    );
  /** A change at any replica takes effect on every one, before and after all clocks step. */
  const eachWriter = async (round: (writer: TestToolhost, n: number) => Promise<void>) => {
    for (const [n, writer] of replicas.entries()) await round(writer, n);
    step();
    for (const [n, writer] of replicas.entries()) await round(writer, n + replicas.length);
  };

  it('refuse a revoked key within seconds', async () => {
    await world.toolhost.createServer(serverAt('keyed', world.upstream.url, stored));
    const key = await world.toolhost.key();
    await everywhere(async (replica) => assert.equal((await replica.rpc('keyed', key, 'ping')).status, 200));
    assert.equal((await world.toolhost.rest('DELETE', `/keys/key_${key.split('_')[1]}`)).status, 200);
    for (const replica of replicas) {
      await eventually(async () => assert.equal((await replica.rpc('keyed', key, 'ping')).status, 401), soonMs);
    }
  });

  it('refuse a key that any of them revoked', async () => {
    await eachWriter(async (writer) => {
      const key = await writer.key();
      await everywhere(async (replica) => assert.equal((await replica.rpc('keyed', key, 'ping')).status, 200));
      assert.equal((await writer.rest('DELETE', `/keys/key_${key.split('_')[1]}`)).status, 200);
      await everywhere(async (replica) => {
        assert.equal((await replica.rpc('keyed', key, 'ping')).status, 401);
        assert.equal((await replica.rest('GET', '/servers', { key })).status, 401);
      });
    });
  });

  it('serve the changes of any of them, and no longer a deleted server', async () => {
    await eachWriter(async (writer, n) => {
      const slug = `moving-${n}`;
      await everywhere(async (replica) => assert.equal((await replica.rpc(slug, 'token', 'ping')).status, 404));
      await writer.createServer(serverAt(slug, world.upstream.url));
      await everywhere(async (replica) => assert.doesNotMatch(await text(replica, slug, 'token'), /moved/));
      await writer.rest('PATCH', `/servers/${slug}`, { body: { tools: [toolAt(`${world.upstream.url}/moved`)] } });
      await everywhere(async (replica) => assert.match(await text(replica, slug, 'token'), /"\/moved"/));
      await writer.rest('DELETE', `/servers/${slug}`);
      await everywhere(async (replica) => assert.equal((await replica.rpc(slug, 'token', 'ping')).status, 404));
    });
  });

  it('hold the limits that the operator set at any of them', async () => {
    await world.toolhost.createServer(serverAt('limited', world.upstream.url));
    const called = async (replica: TestToolhost) => (await replica.rpc('limited', 'token', 'tools/call', call)).status;
    const call = { name: 'get', arguments: {} };
    await eachWriter(async (writer) => {
      await operate(writer, 'setWorkspaceLimits', 'local', { calls_per_second: 1 });
      await everywhere(async (replica) => {
        const all = await Promise.all(Array.from({ length: 10 }, () => called(replica)));
        assert.ok(all.includes(429), String(all));
      });
      await operate(writer, 'setWorkspaceLimits', 'local', { calls_per_second: null });
      await everywhere(async (replica) => assert.equal(await called(replica), 200));
    });
  });

  describe('and people who log in', () => {
    let slug: string;
    let clients: OAuthClient[];
    before(async () => {
      slug = await world.serve();
      const { id } = await world.client(slug);
      clients = replicas.map(({ url }) => clientWithId(id, { issuer: `${url}/mcp/${slug}` }));
    });
    const list = async (replica: TestToolhost, token: string) => (await replica.rpc(slug, token, 'tools/list')).status;
    const client = (n: number) => clients[n % clients.length] as OAuthClient;

    it('redeem a code once, at any of them', async () => {
      await eachWriter(async (_writer, n) => {
        const { code, verifier } = await world.logIn(client(0));
        const { access_token } = tokensOf(await client(n).redeem(code, verifier));
        await everywhere(async (replica) => assert.equal(await list(replica, access_token), 200));
        assertOAuthError(await client(n + 1).redeem(code, verifier), 400, 'invalid_grant');
        await everywhere(async (replica) => assert.equal(await list(replica, access_token), 401));
      });
    });

    it('refuse the tokens of a login that any of them revoked, or its client ended', async () => {
      await eachWriter(async (writer, n) => {
        const { code, verifier } = await world.logIn(client(0));
        const tokens = tokensOf(await client(n).redeem(code, verifier));
        await everywhere(async (replica) => assert.equal(await list(replica, tokens.access_token), 200));
        if (n % 2) await client(n).revoke(tokens.refresh_token);
        else {
          const { body } = await writer.rest('GET', `/grants?slug=${slug}&limit=1`);
          await writer.rest('DELETE', `/grants/${(body.grants as { id: string }[])[0]?.id}`);
        }
        await everywhere(async (replica) => assert.equal(await list(replica, tokens.access_token), 401));
        assertOAuthError(await client(n + 1).refresh(tokens.refresh_token), 400, 'invalid_grant');
      });
    });
  });
});
