import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { root } from '../files.ts';
import { createBrowser } from '../support/browser/browser.ts';
import { startHonestProvider } from '../support/oauth/honest-provider.ts';
import { logIn } from '../support/oauth/log-in.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { formatTranscript, runScript } from '../support/toolhost/run-script.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';

const suite = join(root, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

describe('official conformance suite for authorization', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'toolhost-oauth-conformance-'));
  const provider = await startHonestProvider();
  const toolhost = await startToolhost({ egressPorts: [provider.port] });
  await toolhost.createServer({
    name: 'Items',
    slug: 'items',
    authentication: { type: 'Bearer' },
    oauth: await provider.createOAuthConfig(`${toolhost.url}/mcp/items/callback`),
    tools: [{ name: 'read', description: 'Reads.', method: 'GET', url: `${provider.url}/me` }],
  });
  after(async () => {
    await Promise.all([toolhost.stop(), provider.close()]);
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs the suite, and logs a person in when it asks for it. */
  async function run(resource: readonly string[]): Promise<void> {
    const port = await findFreePort();
    const issuer = `${toolhost.url}/mcp/items`;
    const { id } = await registerClient({ issuer, redirectUri: `http://127.0.0.1:${port}/callback` });
    const client = ['--client-id', id, '-p', String(port)];
    const browser = createBrowser();
    const logInAndReturn = async (url: string) => void (await fetch(await logIn(browser, url, 'Anna')));
    const onLine = (line: string) => (line.startsWith(`${issuer}/authorize?`) ? logInAndReturn(line) : undefined);
    const args = ['authorization', '--url', issuer, ...client, ...resource, '-o', directory];
    const result = await runScript(suite, args, directory, { onLine });
    assert.equal(result.code, 0, formatTranscript(result));
    assert.match(result.stdout, /^Total: 3 passed, 0 failed$/m, formatTranscript(result));
  }

  it('passes as an authorization server [mcp 59]', () => run([]));

  it('passes when the suite names the resource [mcp 59]', () => run(['--resource', `${toolhost.url}/mcp/items`]));
});
