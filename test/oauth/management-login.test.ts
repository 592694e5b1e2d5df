import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { createCookieBrowser } from '../support/browser/cookie-browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const redirectUri = 'http://127.0.0.1:9/cb';
const verifier = 'v'.repeat(50);

/** Creates a browser that keeps cookies, submits forms, and follows links, up to the client's redirect. */
function createFollower() {
  const { open } = createCookieBrowser();
  const request = (url: URL, form?: URLSearchParams) => open(url, form ? { method: 'POST', body: form } : {});
  return async function follow(start: URL): Promise<URL> {
    let url = start;
    let step = await request(url);
    for (let hops = 0; hops < 15; hops++) {
      assert.ok(step.response.status < 400, `${url.pathname}: ${step.response.status} ${step.html}`);
      const location = step.response.headers.get('location');
      const link = /id="continue" href="([^"]+)"/.exec(step.html)?.[1]?.replaceAll('&amp;', '&');
      const action = /<form method="post"(?: action="([^"]*)")?/.exec(step.html);
      if (location !== null) url = new URL(location, url);
      else if (link) url = new URL(link);
      else if (action) {
        const sealed = /name="request" value="([^"]+)"/.exec(step.html)?.[1];
        url = new URL(action[1] ?? url.href, url);
        step = await request(url, new URLSearchParams(sealed ? { request: sealed, decision: 'allow' } : {}));
        continue;
      } else break;
      if (url.href.startsWith(redirectUri)) return url;
      step = await request(url);
    }
    throw new Error(`the login ended at ${url.href}`);
  };
}

type Tokens = { access_token: string; refresh_token: string; scope: string; client_id: string };

describe('login at the management server', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost.stop());

  async function logIn(scope?: string): Promise<Tokens> {
    const registered = await fetch(`${toolhost.url}/mcp/manage/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [redirectUri], client_name: 'Agent' }),
    });
    const { client_id } = (await registered.json()) as { client_id: string };
    const url = new URL(`${toolhost.url}/mcp/manage/authorize`);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri: redirectUri,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...(scope && { scope }),
    }).toString();
    const redirect = await createFollower()(url);
    assert.equal(redirect.searchParams.get('iss'), `${toolhost.url}/mcp/manage`);
    const response = await fetch(`${toolhost.url}/mcp/manage/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code: redirect.searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        client_id,
        code_verifier: verifier,
      }),
    });
    return { ...((await response.json()) as Omit<Tokens, 'client_id'>), client_id };
  }

  it('[mcp 36] is offered to a client without a token', async () => {
    const { status, headers } = await toolhost.rpc('manage', undefined, 'tools/list');
    assert.equal(status, 401);
    assert.match(
      headers.get('www-authenticate') ?? '',
      /resource_metadata="[^"]+\/mcp\/manage", scope="manage:read manage:write"/,
    );
  });

  it("[sec M9] is recorded in the person's workspace, as is its end", async () => {
    const { access_token, client_id } = await logIn();
    const revoked = await fetch(`${toolhost.url}/mcp/manage/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ client_id, token: access_token }),
    });
    assert.equal(revoked.status, 200);
    const events = (await toolhost.rest('GET', '/audit')).body.events as Json[];
    const loginEvents = events.filter(({ actor_id }) => actor_id === 'oauth');
    assert.deepEqual(
      loginEvents.map(({ operation, target }) => [operation, target]),
      [
        ['loginRevoked', 'manage'],
        ['login', 'manage'],
      ],
    );
  });

  it('allows an agent to manage without a copied key, as the person who signed in', async () => {
    const tokens = await logIn();
    assert.equal(tokens.scope, 'manage:read manage:write');
    const created = await toolhost.callTool('manage', tokens.access_token, 'createMcpServer', {
      name: 'Made after a login',
      slug: 'made-after-login',
      tools: [],
    });
    assert.notEqual(created.isError, true, JSON.stringify(created.content));
    const { server } = created.structuredContent as { server: { created_by: string } };
    assert.match(server.created_by, /^usr_/);
    const listed = await toolhost.rest('GET', '/servers');
    assert.ok(JSON.stringify(listed.body).includes('made-after-login'), 'it is in the local workspace');
    const { grants } = (await toolhost.rest('GET', '/grants?slug=manage')).body as { grants: Json[] };
    assert.ok(grants[0]?.last_used_at, JSON.stringify(grants));
    const { keys } = (await toolhost.rest('GET', '/keys')).body as { keys: Json[] };
    assert.ok(keys[0]?.last_used_at, 'management calls count as a use of the key');
  });

  it("[find A5] retains the person's 100 most recently used agents", async () => {
    const getStatus = async ({ access_token }: Tokens) =>
      (await toolhost.rpc('manage', access_token, 'tools/list')).status;
    const [first, second] = [await logIn(), await logIn()];
    assert.deepEqual([await getStatus(first), await getStatus(second)], [200, 200]);
    // The listing stores the time of each agent's last use.
    await toolhost.rest('GET', '/grants');
    const { db } = toolhost.running.app.runner;
    const rows = await db
      .selectFrom('grants')
      .selectAll()
      .where('revoked_at', 'is', null)
      .orderBy('created_at')
      .execute();
    const [oldest, ...others] = rows.slice(-2);
    assert.ok(oldest);
    await db.updateTable('grants').set({ last_used_at: 1 }).where('id', '=', oldest.id).execute();
    const live = () => db.selectFrom('grants').select('id').where('revoked_at', 'is', null).execute();
    const missing = 100 - (await live()).length;
    const more = Array.from({ length: missing }, (_, n) => ({ ...oldest, id: `grt_more${n}`, last_used_at: null }));
    await db.insertInto('grants').values(more).execute();

    const last = await logIn();
    const ids = (await live()).map(({ id }) => id);
    assert.deepEqual([ids.length, ids.includes(oldest.id), ids.includes(others[0]?.id ?? '')], [100, false, true]);
    await eventually(async () => assert.equal(await getStatus(first), 401));
    assert.deepEqual([await getStatus(second), await getStatus(last)], [200, 200]);
  });

  it('[mcp 38] returns 403 with the scope to request when the login does not cover an operation', async () => {
    const tokens = await logIn('manage:read');
    assert.equal(tokens.scope, 'manage:read');
    const read = await toolhost.callTool('manage', tokens.access_token, 'listMcpServers');
    assert.notEqual(read.isError, true);
    const { status, headers } = await toolhost.rpc('manage', tokens.access_token, 'tools/call', {
      name: 'createMcpServer',
      arguments: { name: 'No', slug: 'not-allowed', tools: [] },
    });
    assert.equal(status, 403);
    assert.match(headers.get('www-authenticate') ?? '', /error="insufficient_scope"/);
    assert.match(headers.get('www-authenticate') ?? '', /scope="manage:read manage:write"/);
  });
});
