import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isFullSuite } from '../sets.ts';
import { createBrowser } from '../support/browser/browser.ts';
import { type HonestProvider, startHonestProvider } from '../support/oauth/honest-provider.ts';
import { logIn } from '../support/oauth/log-in.ts';
import { type LoginClient, type LoginClientKind, loginClients } from '../support/oauth/oauth-clients.ts';
import { getResultText } from '../support/one-tool.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import {
  type PresentedToken,
  type ProtectedUpstream,
  startProtectedUpstream,
} from '../support/upstreams/protected-upstream.ts';

const hourMs = 60 * 60_000;
const providerTokenSeconds = 600;

/** Each `authentication` type, and the place where the upstream must find the provider's token. */
const types = [
  { authentication: { type: 'Bearer' }, location: 'authorization: Bearer *' },
  { authentication: { type: 'ApiKey', header: 'X-Api-Key' }, location: 'x-api-key: *' },
  { authentication: { type: 'Basic' }, location: 'authorization: Basic *' },
  { authentication: { type: 'QueryParam', query_key: 'key' }, location: '?key=*' },
];

const sdks = loginClients.filter(({ name }) => name === 'SDK v1' || name === 'SDK v2, auto');

type Config = { authentication: Json; oauth?: Json };

/** Starts a service with an adjustable clock and one server whose users log in at the provider. */
async function startService(provider: HonestProvider, upstream: ProtectedUpstream, { authentication, oauth }: Config) {
  let aheadMs = 0;
  const toolhost = await startToolhost({
    egressPorts: [provider.port, upstream.port],
    runtimeOptions: { now: () => Date.now() + aheadMs },
  });
  await toolhost.createServer({
    name: 'Items',
    slug: 'items',
    authentication,
    oauth: { ...(await provider.createOAuthConfig(`${toolhost.url}/mcp/items/callback`)), ...oauth },
    tools: [
      {
        name: 'read_item',
        description: 'Reads an item.',
        method: 'GET',
        url: `${upstream.url}/:item`,
        input_schema: { item: { type: 'string' } },
        output_schema: { type: 'object', properties: { person: { type: 'string' }, item: { type: 'string' } } },
      },
    ],
  });
  const advanceClock = (ms: number) => {
    aheadMs += ms;
  };
  return { toolhost, advanceClock };
}

describe('MCP clients that log a person in', { concurrency: 2 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'toolhost-oauth-clients-'));
  after(() => rmSync(directory, { recursive: true, force: true }));

  type Scene = {
    client: LoginClient;
    provider: HonestProvider;
    upstream: ProtectedUpstream;
    advanceClock(ms: number): void;
    /** Makes one call, which must succeed. Returns the credentials that the upstream received. */
    read(item: string): Promise<PresentedToken[]>;
  };

  /** Removes the provider's tokens first, because they are random and may contain a Toolhost prefix by chance. */
  const assertNoToolhostToken = ({ issued }: HonestProvider, { requests }: ProtectedUpstream) => {
    const sentText = issued.reduce((text, token) => text.replaceAll(token, ''), JSON.stringify(requests));
    assert.doesNotMatch(sentText, /\bth[acpr]_\w/, 'a Toolhost token reached the upstream');
  };

  /** Starts a provider, an upstream, a service, and a client that a person has just logged in. */
  async function withLoggedInClient(
    kind: LoginClientKind,
    config: Config,
    use: (scene: Scene) => Promise<void>,
  ): Promise<void> {
    const provider = await startHonestProvider({ accessTokenSeconds: providerTokenSeconds });
    const upstream = await startProtectedUpstream(provider);
    const { toolhost, advanceClock } = await startService(provider, upstream, config);
    const person = `Anna of ${kind.name}`;
    const browser = createBrowser();
    let client: LoginClient | undefined;
    try {
      const connected = await kind.connect({
        url: `${toolhost.url}/mcp/items`,
        home: mkdtempSync(join(directory, 'home-')),
        completeLogin: (url) => logIn(browser, url, person),
      });
      client = connected;
      const read = async (item: string) => {
        upstream.take();
        const { isError, content } = await connected.callTool('read_item', { item });
        assert.notEqual(isError, true, JSON.stringify(content));
        assert.deepEqual(JSON.parse(getResultText({ content })), { person, item });
        return upstream.take();
      };
      await use({ client, provider, upstream, advanceClock, read });
    } finally {
      await client?.close();
      await Promise.all([toolhost.stop(), upstream.close(), provider.close()]);
    }
  }

  for (const [index, kind] of (isFullSuite ? loginClients : sdks).entries()) {
    const { authentication, location } = types[index % types.length] ?? assert.fail();
    it(`logs in once with ${kind.name} and sends the provider's token upstream as ${authentication.type} [mcp 59]`, async () => {
      await withLoggedInClient(kind, { authentication }, async ({ client, provider, upstream, advanceClock, read }) => {
        assert.equal(await client.revision(), kind.revision);
        assert.deepEqual(await client.toolNames(), ['read_item']);
        assert.match(client.token?.() ?? 'tha_', /^tha_/);
        const [first, ...repeated] = await read('first');
        assert.deepEqual([first?.location, first?.isLive, repeated], [location, true, []]);

        // The provider ends its token early: the token is rejected once, renewed, and sent again.
        await provider.revokeAccessTokens();
        const [refused, renewed, ...more] = await read('after a refusal');
        assert.deepEqual(refused, { ...first, isLive: false });
        assert.deepEqual([renewed?.location, renewed?.isLive, more], [location, true, []]);

        // The provider's token has expired: it is renewed before it is sent. Then the Toolhost token has expired, too:
        // the client renews it.
        for (const ms of [providerTokenSeconds * 1000, 2 * hourMs]) {
          await provider.revokeAccessTokens();
          advanceClock(ms);
          const [fresh, ...otherCalls] = await read(`after ${ms} ms`);
          assert.deepEqual([fresh?.location, fresh?.isLive, otherCalls], [location, true, []]);
        }
        assert.equal(provider.logins, 1, 'a person was asked to log in again');
        assertNoToolhostToken(provider, upstream);
      });
    });
  }

  for (const kind of sdks) {
    it(`gives ${kind.name} the provider's own token in passthrough mode, and renews it [mcp 59]`, async () => {
      const config = { authentication: { type: 'Bearer' }, oauth: { token_mode: 'passthrough' } };
      await withLoggedInClient(kind, config, async ({ client, provider, upstream, advanceClock, read }) => {
        const [first, ...repeated] = await read('first');
        assert.deepEqual([first?.token, first?.isLive, repeated], [client.token?.(), true, []]);

        await provider.revokeAccessTokens();
        advanceClock(2 * hourMs);
        const [refused, renewed, ...more] = await read('after its time');
        assert.deepEqual(refused, { ...first, isLive: false });
        assert.deepEqual([renewed?.token, renewed?.isLive, more], [client.token?.(), true, []]);

        assert.equal(provider.logins, 1, 'a person was asked to log in again');
        assertNoToolhostToken(provider, upstream);
      });
    });

    it(`sends ${kind.name} to log in again once the provider has ended the login [mcp 59]`, async () => {
      const config = { authentication: { type: 'Bearer' } };
      await withLoggedInClient(kind, config, async ({ client, provider, advanceClock, read }) => {
        await read('first');
        await provider.revokeAccessTokens();
        await provider.revokeRefreshTokens();
        advanceClock(providerTokenSeconds * 1000);
        await assert.rejects(client.callTool('read_item', { item: 'second' }), /Unauthorized/);
        assert.equal(provider.logins, 2);
      });
    });
  }
});
