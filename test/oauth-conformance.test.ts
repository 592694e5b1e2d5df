import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type HonestProvider, startHonestProvider } from './support/honest-provider.ts';
import { freePort } from './support/listener.ts';
import { createLoginBrowser, logIn } from './support/login-browser.ts';
import { type Ended, runScript, transcript } from './support/run-script.ts';
import { type Json, startToolhost, type TestToolhost } from './support/toolhost.ts';

const suite = join(import.meta.dirname, '../node_modules/@modelcontextprotocol/conformance/dist/index.js');

describe('the official conformance suite, authorization', () => {
  let provider: HonestProvider;
  let toolhost: TestToolhost;
  let directory: string;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'toolhost-oauth-conformance-'));
    provider = await startHonestProvider();
    toolhost = await startToolhost({ egress: [provider.port] });
    await toolhost.createServer({
      name: 'Items',
      slug: 'items',
      authentication: { type: 'Bearer' },
      oauth: await provider.oauthFor(`${toolhost.url}/mcp/items/callback`),
      tools: [{ name: 'read', description: 'Reads.', method: 'GET', url: `${provider.url}/me` }],
    });
  });
  after(async () => {
    await Promise.all([toolhost.stop(), provider.close()]);
    rmSync(directory, { recursive: true, force: true });
  });

  async function register(redirectUri: string): Promise<string> {
    const answer = await fetch(`${toolhost.url}/mcp/items/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Conformance suite', redirect_uris: [redirectUri] }),
    });
    return ((await answer.json()) as { client_id: string }).client_id;
  }

  /** Runs the suite, and logs a person in where it asks for one. */
  async function run(resource: readonly string[]): Promise<Ended> {
    const port = await freePort();
    const issuer = `${toolhost.url}/mcp/items`;
    const client = ['--client-id', await register(`http://127.0.0.1:${port}/callback`), '-p', String(port)];
    const browser = createLoginBrowser([toolhost.url, provider.url]);
    let login: Promise<unknown> | undefined;
    const onLine = (line: string) => {
      if (line.startsWith(`${issuer}/authorize?`)) login = logIn(browser, line, 'Anna').then((url) => fetch(url));
    };
    const args = ['authorization', '--url', issuer, ...client, ...resource, '-o', directory];
    const [ended] = await Promise.all([runScript(suite, args, directory, { onLine })]);
    await login;
    return ended;
  }

  it('passes as an authorization server [mcp 59]', async () => {
    const ended = await run([]);
    assert.equal(ended.code, 0, transcript(ended));
    console.log(transcript(ended));
  });

  it('passes when the suite names the resource [mcp 59]', async () => {
    const ended = await run(['--resource', `${toolhost.url}/mcp/items`]);
    assert.equal(ended.code, 0, transcript(ended));
  });
});
