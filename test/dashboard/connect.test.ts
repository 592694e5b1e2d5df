import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createSnippets } from '@toolhost/mcp-clients/clients';
import type { Page } from 'playwright-core';
import { button, field, selectOption } from '../support/browser/dashboard.ts';
import { openPage, openServer, useDashboard } from '../support/browser/use-dashboard.ts';

/** Names of the clients that send a key, and of those with an install link. */
const connection = { name: 'any', url: 'https://any.example/mcp', token: 'any' };
const clients = createSnippets(connection).map(({ name }) => name);
const clientsWithInstallLink = new Set(
  createSnippets(connection).flatMap(({ name, install }) => (install ? [name] : [])),
);

describe('the Connect page of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('stored', { authentication: { type: 'Bearer', token: '{{KEY}}' } }));
    await toolhost.createServer(config('forwarded', { authentication: { type: 'Bearer' } }));
  });

  /** Returns the snippet text for a client and the target of its install link. */
  async function snippet(page: Page, client: string): Promise<{ code: string; install: string | undefined }> {
    await selectOption(page, 'Client', client);
    const panel = page.getByRole('region', { name: client, exact: true });
    const code = panel.getByRole('region', { name: `snippet for ${client}` });
    await code.waitFor();
    const link = panel.getByRole('link', { name: /^(Install in|Add to) / });
    const install = (await link.count()) > 0 ? ((await link.getAttribute('href')) ?? '') : undefined;
    return { code: (await panel.textContent()) ?? '', install };
  }

  /** Parses the connection that an install link contains. */
  function parseInstallLink(install: string): { url: string; headers?: { Authorization: string } } {
    const link = new URL(install);
    const { url, connectorUrl } = Object.fromEntries(link.searchParams);
    if (link.protocol === 'goose:') return { url: url ?? '' };
    if (link.protocol === 'https:') return { url: connectorUrl ?? '' };
    const text =
      link.protocol === 'cursor:'
        ? Buffer.from(link.searchParams.get('config') ?? '', 'base64').toString()
        : decodeURIComponent(link.search.slice(1));
    return JSON.parse(text) as ReturnType<typeof parseInstallLink>;
  }

  it('creates a key for a server with a stored credential and puts it into every snippet', async (t) => {
    const { toolhost } = dashboard;
    await toolhost.rest('PUT', '/servers/stored/secrets/KEY', { body: { value: 'of-the-test' } });
    const page = await openPage(t, dashboard, '/servers/stored/connect');
    assert.match((await snippet(page, 'Claude Code')).code, /YOUR_API_KEY/);
    await button(page, 'Create key for this server').click();
    const shown = page.getByRole('region', { name: 'API key', exact: true });
    await shown.waitFor();
    const key = (await shown.textContent()) ?? '';
    for (const client of clients) {
      const { code, install } = await snippet(page, client);
      assert.ok(code.includes(`${toolhost.url}/mcp/stored`), client);
      assert.ok(code.includes(key), client);
      assert.equal(install !== undefined, clientsWithInstallLink.has(client), client);
      if (install === undefined) continue;
      const { url, headers } = parseInstallLink(install);
      assert.equal(url, `${toolhost.url}/mcp/stored`);
      // The client prompts for the key or reads it from a variable.
      assert.match(headers?.Authorization ?? '', /^Bearer \$\{(input:token|env:STORED_TOKEN)\}$/);
    }
    await selectOption(page, 'Client', 'Codex');
    const command = page.getByRole('region', { name: 'command for Codex' });
    await command.getByText(`export STORED_TOKEN=${key}`, { exact: true }).waitFor();
    assert.equal((await toolhost.rpc('stored', key, 'tools/list')).status, 200);
    const refused = await toolhost.rest('GET', '/servers', { key });
    assert.equal(refused.status, 403, 'the key can list servers');
  });

  it("puts the caller's own token into the snippets and nowhere else", async (t) => {
    const page = await openPage(t, dashboard, '/servers/forwarded/connect');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url() + (request.postData() ?? '')));
    await field(page, 'Token for snippets').fill('my-own-token');
    assert.match((await snippet(page, 'Claude Code')).code, /my-own-token/);
    await snippet(page, 'Codex');
    const command = page.getByRole('region', { name: 'command for Codex' });
    assert.equal(await command.textContent(), 'export FORWARDED_TOKEN=my-own-token');
    assert.ok(!requests.some((text) => text.includes('my-own-token')));
  });

  it('runs the connection check and shows what fails and why', async (t) => {
    const page = await openServer(t, dashboard, 'connect', 'unset', {
      authentication: { type: 'Bearer', token: '{{MISSING}}' },
    });
    await page.getByRole('heading', { name: 'Connection check', exact: true }).waitFor();
    await button(page, 'Check connection').click();
    await page.getByRole('img', { name: 'Passed' }).first().waitFor();
    await page.getByRole('img', { name: 'Problem' }).first().waitFor();
    await page
      .getByText(/MISSING/)
      .first()
      .waitFor();
  });
});
