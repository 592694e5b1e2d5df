import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { freshCall } from '../support/fresh-request.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId } from '../support/oauth/oauth-client.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';

describe('a service that stops while its database is down, after a provider has rotated tokens', () => {
  let postgres: TestPostgres;
  let proxy: SilentProxy;
  let world: LoginWorld;
  let dataDir: string;
  let child: ChildToolhost | undefined;
  /** Environment of a second process that reaches the database of `world` through `proxy`. */
  let env: Record<string, string>;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-lost-tokens-'));
    postgres = await startPostgres();
    const direct = await postgres.createDatabase();
    const url = new URL(direct);
    proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    const shared = { MASTER_KEY: randomBytes(32).toString('base64'), TRUSTED_PROXIES: '1' };
    world = await startLoginWorld({ env: { ...shared, DATABASE_URL: direct } });
    const allowed = [...world.provider.ports, world.upstream.port].map((port) => `127.0.0.1:${port}`);
    env = {
      ...shared,
      DATABASE_URL: url.href,
      EGRESS_ALLOW: allowed.join(','),
      PORT: '0',
      DEMO: '0',
      DATA_DIR: dataDir,
    };
  });
  after(async () => {
    await child?.end('SIGKILL');
    await world.stop();
    await proxy.close();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Returns the tokens of a new login whose provider token expires immediately. */
  const logIn = async (token_mode: string) => {
    const slug = await world.createServer({}, { token_mode });
    const client = await world.registerClient(slug);
    return { slug, client, ...(await world.getTokens(client)) };
  };

  for (const mode of ['issued', 'passthrough']) {
    it(`[find C5] reports how many logins are lost and exits with 1 (${mode})`, async () => {
      world.provider.onToken((form) => {
        const { body } = world.provider.createTokenResponse(form);
        return { body: { ...(body as object), expires_in: 1 } };
      });
      const { slug, client, access_token, refresh_token } = await logIn(mode);
      child = await startChildToolhost(env);
      const clientOfSecondProcess = clientWithId(client.id, { issuer: `${child.url}/mcp/${slug}` });
      world.provider.takeTokenRequests();
      const heldRequest = world.provider.waitForTokenRequest();
      world.provider.onToken(() => 'hold');
      const refreshed =
        mode === 'issued'
          ? freshCall(child.url, slug, { key: access_token, tool: 'run' })
          : clientOfSecondProcess.refresh(refresh_token, { resource: undefined });
      const request = await heldRequest;
      proxy.cut();
      request.release(world.provider.createTokenResponse(new URLSearchParams(request.body.toString())));
      assert.equal((await refreshed).status, mode === 'issued' ? 200 : 503);
      assert.equal(await child.end('SIGTERM'), 1, child.output());
      assert.match(child.output(), /"logins":1,.*refreshed tokens of logins were lost; their users must log in again/);
      proxy.heal();
    });
  }
});
