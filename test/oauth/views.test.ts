import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, expectTokens, type Tokens } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('login for a view', async () => {
  const world = await startLoginWorld();
  world.upstream.on('*', () => ({ body: {} }));
  after(() => world.stop());

  const createServer = (oauth: Json = {}) => {
    const tools = [
      createTool(`${world.upstream.url}/things`),
      { ...createTool(`${world.upstream.url}/notes`), name: 'write', method: 'POST', title: 'Write a note' },
    ];
    const views = { desk: { title: 'The desk', tools: ['write', 'run'] }, reading: { read_only: true } };
    return world.createServer({ tools, views }, oauth);
  };
  const resourceFor = (slug: string, view: string) => ({ resource: `${world.issuer(slug)}/${view}` });
  const logIn = async (slug: string, view: string) => {
    const client = await world.registerClient(slug);
    const { code, verifier } = await world.logIn(client, undefined, resourceFor(slug, view));
    return { client, tokens: expectTokens(await client.redeem(code, verifier, resourceFor(slug, view))) };
  };
  const getStatuses = async (slug: string, { access_token }: Pick<Tokens, 'access_token'>) => {
    const replies = [slug, `${slug}/desk`, `${slug}/reading`].map((address) => world.listTools(address, access_token));
    return (await Promise.all(replies)).map(({ status }) => status);
  };

  it("begins at the view's metadata, which the challenge names [agent 2]", async () => {
    const slug = await createServer();
    const { status, headers } = await world.listTools(`${slug}/desk`, undefined);
    const metadata = `${world.toolhost.url}/.well-known/oauth-protected-resource/mcp/${slug}/desk`;
    assert.equal(status, 401);
    assert.ok(headers.get('www-authenticate')?.includes(`resource_metadata="${metadata}"`));
    const document = await fetch(metadata);
    assert.equal(document.headers.get('access-control-allow-origin'), '*');
    const issuer = world.issuer(slug);
    const expected = { resource: `${issuer}/desk`, authorization_servers: [issuer], resource_name: 'The desk' };
    assert.partialDeepStrictEqual(await document.json(), expected);
    assert.equal((await fetch(`${metadata}k`)).status, 404);
  });

  it('shows the person the view and what it can do [agent 2]', async () => {
    const slug = await createServer();
    const client = await world.registerClient(slug);
    const page = await world.newBrowser().get(client.authorization(resourceFor(slug, 'desk')).url);
    assert.match(page.html, /The desk/);
    assert.match(page.html, /It can read with: run\.<\/small><small>It can change data with: Write a note\./);
    assert.ok(page.html.includes(`${world.issuer(slug)}/desk`));
    const reading = await world.newBrowser().get(client.authorization(resourceFor(slug, 'reading')).url);
    assert.match(reading.html, /It can read with: run\.<\/small><small>It changes nothing\./);
    const whole = await world.newBrowser().get(client.authorization().url);
    assert.doesNotMatch(whole.html, /Limited to view/);
  });

  for (const token_mode of ['issued', 'passthrough']) {
    it(`issues tokens for that view only, also after a refresh (${token_mode}) [agent 2]`, async () => {
      const slug = await createServer({ token_mode });
      const { client, tokens } = await logIn(slug, 'desk');
      assert.deepEqual(await getStatuses(slug, tokens), [401, 200, 401]);
      assert.notEqual((await world.callTool(`${slug}/desk`, tokens.access_token)).isError, true);
      assertOAuthError(await client.refresh(tokens.refresh_token), 400, 'invalid_target');
      assertOAuthError(await client.refresh(tokens.refresh_token, resourceFor(slug, 'reading')), 400, 'invalid_target');
      const renewed = expectTokens(await client.refresh(tokens.refresh_token, resourceFor(slug, 'desk')));
      assert.deepEqual(await getStatuses(slug, renewed), [401, 200, 401]);
      const repeated = expectTokens(await client.refresh(renewed.refresh_token, { resource: undefined }));
      assert.deepEqual(await getStatuses(slug, repeated), [401, 200, 401]);
      // A view is part of the server, so a token for the whole server is valid at both.
      assert.deepEqual(await getStatuses(slug, await world.getTokens(client)), [200, 200, 200]);
    });
  }

  it('restricts the provider’s own token to the view, whatever it could reach before [agent 2] [sec M9]', async () => {
    const slug = await createServer({ token_mode: 'passthrough' });
    const body = { access_token: 'the-same-every-time', token_type: 'bearer', expires_in: 600 };
    assert.deepEqual(await getStatuses(slug, { access_token: 'of-a-person' }), [200, 200, 200]);
    assert.deepEqual(await getStatuses(slug, { access_token: body.access_token }), [200, 200, 200]);
    const { client, tokens } = await logIn(slug, 'desk');
    assert.deepEqual(await getStatuses(slug, tokens), [401, 200, 401]);
    const renewed = expectTokens(await client.refresh(tokens.refresh_token, resourceFor(slug, 'desk')));
    assert.deepEqual(await getStatuses(slug, renewed), [401, 200, 401]);
    assert.deepEqual(await getStatuses(slug, { access_token: 'of-a-person' }), [200, 200, 200]);
    // A provider may return the same token again, which this process has cached.
    world.provider.onToken(() => ({ body }));
    const { tokens: known } = await logIn(slug, 'desk');
    world.provider.onToken();
    assert.deepEqual(await getStatuses(slug, known), [401, 200, 401]);
    world.upstream.take();
    assert.equal((await world.toolhost.rpc(slug, known.access_token, 'tools/call', { name: 'write' })).status, 401);
    assert.deepEqual(world.upstream.take(), []);
  });

  it('is for one URL, which the code and its token share [agent 2]', async () => {
    const slug = await createServer();
    const other = await createServer();
    const client = await world.registerClient(slug);
    const address = world.issuer(slug);
    for (const resource of [`${address}/nothing`, `${world.issuer(other)}/desk`, `${address}/desk/run`]) {
      const page = await world.newBrowser().get(client.authorization({ resource }).url);
      assert.match(page.html, /invalid_target/, resource);
    }
    const { code, verifier } = await world.logIn(client, undefined, resourceFor(slug, 'desk'));
    const whole = await client.redeem(code, verifier);
    assertOAuthError(whole, 400, 'invalid_target');
    const named = `resource names ${address}; it must be ${address}/desk, the resource of the login`;
    assert.equal(whole.body.error_description, named);
    assertOAuthError(await client.redeem(code, verifier, resourceFor(slug, 'reading')), 400, 'invalid_target');
    const tokens = expectTokens(await client.redeem(code, verifier, { resource: undefined }));
    assert.deepEqual(await getStatuses(slug, tokens), [401, 200, 401]);
  });

  it('cannot be widened in the consent form [agent 2]', async () => {
    const slug = await createServer();
    const client = await world.registerClient(slug);
    const browser = world.newBrowser();
    const page = await browser.get(client.authorization(resourceFor(slug, 'desk')).url);
    for (const view of ['reading', '', undefined]) {
      const response = await browser.press(page, 'Allow and log in', { fields: { view } });
      assert.equal(response.status, 403, response.html);
    }
  });

  it('ends with the view, and shows its limit to the workspace [agent 2]', async () => {
    const slug = await createServer();
    const { client, tokens } = await logIn(slug, 'desk');
    const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}`);
    const grants = (body.grants as Json[]).map(({ server, view }) => `${server} ${view}`);
    assert.deepEqual(grants, [`${slug} desk`]);
    await world.updateServer(slug, { views: { reading: { read_only: true } } });
    assert.deepEqual(await getStatuses(slug, tokens), [401, 404, 401]);
    assertOAuthError(await client.refresh(tokens.refresh_token, { resource: undefined }), 400, 'invalid_grant');
  });

  it('is valid again with a view of the same name, unless it was revoked [agent 2]', async () => {
    const slug = await createServer();
    const [active, revoked] = [await logIn(slug, 'desk'), await logIn(slug, 'desk')];
    const refresh = ({ client, tokens }: typeof active) =>
      client.refresh(tokens.refresh_token, { resource: undefined });
    const { body } = await world.toolhost.rest('GET', `/grants?slug=${slug}`);
    await world.updateServer(slug, { views: null });
    const newest = (body.grants as Json[])[0];
    assert.ok((await world.toolhost.rest('DELETE', `/grants/${newest?.id}`)).status < 300);
    assertOAuthError(await refresh(active), 400, 'invalid_grant');
    assert.deepEqual(await getStatuses(slug, active.tokens), [401, 404, 404]);
    await world.updateServer(slug, { views: { desk: { tools: ['run'] } } });
    assert.deepEqual(await getStatuses(slug, expectTokens(await refresh(active))), [401, 200, 404]);
    assertOAuthError(await refresh(revoked), 400, 'invalid_grant');
    assert.deepEqual(await getStatuses(slug, revoked.tokens), [401, 401, 404]);
  });
});
