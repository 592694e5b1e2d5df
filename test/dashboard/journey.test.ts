import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { exampleToken } from '../../apps/server/src/example-server.ts';
import { startProjectsApi } from '../../examples/projects/upstream.ts';
import { isFullSuite } from '../sets.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import {
  button,
  chooseRowAction,
  createContext,
  field,
  openSettings,
  type PageProblems,
  selectOption,
  tab,
  watchPage,
} from '../support/browser/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { mcpClients } from '../support/mcp-clients.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const wide = { colorScheme: 'light', viewport: { width: 1440, height: 900 } } as const;
const narrow = { colorScheme: 'dark', viewport: { width: 400, height: 800 } } as const;

for (const view of isFullSuite ? [wide, narrow] : [wide])
  describe(`a user of the dashboard, ${view.colorScheme}, ${view.viewport.width} px`, () => {
    let api: Awaited<ReturnType<typeof startProjectsApi>>;
    let toolhost: TestToolhost;
    let browser: Browser;
    let context: BrowserContext;
    let page: Page;
    let problems: PageProblems;
    let apiKey = '';

    before(async () => {
      api = await startProjectsApi({ host: '127.0.0.1', port: 0, file: ':memory:' });
      toolhost = await startToolhost({ egressPorts: [api.port] });
      browser = await launchChromium();
      context = await createContext(browser, toolhost, view);
      page = await context.newPage();
      problems = await watchPage(page, toolhost.url);
    });
    after(async () => {
      await browser?.close();
      await Promise.all([toolhost?.stop(), api?.close()]);
    });

    const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
    /** Opens a page from the navigation, which a narrow window hides behind a button. */
    async function openPage(name: string): Promise<void> {
      const menu = button(page, 'Open menu');
      if (await menu.isVisible()) await menu.click();
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
    }
    const row = (table: string, text: string | RegExp) =>
      page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text });
    const url = (path: string) => `http://127.0.0.1:${api.port}${path}`;

    /** Connects an MCP client with the API key that the page showed. */
    async function connect() {
      const sdk1 = mcpClients.find(({ name }) => name === 'SDK v1') ?? assert.fail();
      return sdk1.connect({ url: `${toolhost.url}/mcp/my-work`, token: apiKey, home: toolhost.dataDir });
    }

    it('[journey] signs in with one click and sees an empty server list', async () => {
      await page.goto('/servers');
      await button(page, 'Sign in').click();
      await page.waitForURL(`${toolhost.url}/servers`);
      await page.getByRole('heading', { name: 'No servers yet' }).waitFor();
    });

    it("[journey] creates the worked example's server in the form", async () => {
      await page.getByRole('link', { name: 'From scratch' }).click();
      await field(page, 'Name').fill('My work');
      assert.equal(await field(page, 'Slug').inputValue(), 'my-work');
      await field(page, 'Description').fill('Projects and their tasks.');
      await page.getByRole('radio', { name: 'API key' }).check();
      await selectOption(page, 'Credential type', /^API key/);
      await field(page, 'Header').fill('apikey');
      await field(page, 'Tool name').fill('list_projects');
      await field(page, 'Tool description').fill('List projects with their ids, oldest first.');
      await field(page, 'URL').fill(url('/rest/v1/projects'));
      await field(page, 'URL').press('Tab');
      await button(page, 'Add argument').click();
      await field(page, 'Name of argument 1').fill('status');
      await page.getByRole('checkbox', { name: 'status is required' }).uncheck();
      await field(page, 'Description of status').fill('Filter, for example eq.active');

      await button(page, 'Add tool').click();
      await field(page, 'Tool name').fill('create_project');
      await field(page, 'Tool description').fill('Create a project and return it with its new id.');
      await selectOption(page, 'Method', 'POST');
      await field(page, 'URL').fill(url('/rest/v1/projects'));
      await field(page, 'URL').press('Tab');
      await button(page, 'Add argument').click();
      await field(page, 'Name of argument 1').fill('name');
      await button(page, 'Create server').click();
      await page.getByText('Your server is running').waitFor();
      assert.equal(new URL(page.url()).pathname, '/servers/my-work/connect');
    });

    it('[journey] finds the new server in the list and stores its credential', async () => {
      await openPage('Servers');
      await row('Servers', 'My work')
        .getByRole('cell', { name: /(^|Tools: )2$/ })
        .waitFor();
      await row('Servers', 'My work').getByRole('link', { name: 'My work' }).click();
      await heading('My work').waitFor();
      await openSettings(page, 'Secrets');
      await button(page, 'SERVICE_KEY').click();
      await page.getByLabel(/^Secret value/).fill(exampleToken);
      await button(page, 'Save secret').click();
      await row('Secrets', 'SERVICE_KEY').waitFor();
    });

    it('[journey] calls a tool in Try it and sees the request and the result', async () => {
      await tab(page, 'Try it').click();
      await field(page, 'status').fill('eq.active');
      const outgoing = page.getByRole('region', { name: 'Outgoing request' });
      await outgoing.getByText('GET /rest/v1/projects?status=eq.active HTTP/1.1').waitFor();
      assert.ok(!(await outgoing.textContent())?.includes(exampleToken));
      await button(page, 'Call tool').click();
      const result = page.getByRole('region', { name: 'Result' });
      await result.getByText('OK', { exact: true }).waitFor();
      await result.getByText('active').first().waitFor();
      assert.match((await result.textContent()) ?? '', /about [\d,]+ tokens/);
    });

    it('[journey] creates an API key and sees how a client uses it', async () => {
      await openPage('API keys');
      await button(page, 'New API key').first().click();
      const dialog = page.getByRole('dialog');
      await field(dialog, 'Name').fill('My agent');
      await button(dialog, 'Create key').click();
      const code = dialog.getByRole('region', { name: 'API key', exact: true });
      await code.waitFor();
      apiKey = (await code.textContent()) ?? '';
      await dialog.getByRole('region', { name: 'command for Claude Code' }).getByText(apiKey).waitFor();
      await button(dialog, 'Done').click();
      await row('API keys', 'My agent').getByText('Active').waitFor();
      assert.ok(!(await page.content()).includes(apiKey), 'the key is still on the page');
    });

    it('[journey] connects a client and sees its calls appear live', async () => {
      await page.goto('/servers/my-work/connect');
      await page.getByText(`${toolhost.url}/mcp/my-work`).first().waitFor();
      await button(page, 'Check connection').click();
      await page.getByRole('img', { name: 'Passed' }).first().waitFor();
      assert.equal(await page.getByRole('img', { name: 'Problem' }).count(), 0);
      await openPage('Calls');
      await heading('Calls').waitFor();
      const call = row('Calls', 'create_project');
      assert.equal(await call.count(), 0);

      const client = await connect();
      assert.deepEqual(await client.toolNames(), ['list_projects', 'create_project', 'read_more']);
      const created = await client.callTool('create_project', { name: 'From an agent' });
      assert.notEqual(created.isError, true);
      const listed = await client.callTool('list_projects', {});
      assert.match(listed.content[0]?.text ?? '', /From an agent/);
      await client.close();

      await call.getByText('API key').waitFor();
      await row('Calls', 'list_projects').first().waitFor();
      await call.getByRole('button', { name: /create_project/ }).click();
      await page.getByRole('dialog').getByText('my-work').first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
    });

    it('[journey] changes the server and restores the first version', async () => {
      await page.goto('/servers/my-work/settings');
      await field(page, 'Name').fill('My other work');
      await button(page, 'Save').click();
      await heading('My other work').waitFor();
      await openSettings(page, 'Versions');
      await chooseRowAction(page, 'Version 1', 'Restore version 1');
      const dialog = page.getByRole('dialog');
      await dialog.getByText('My other work').first().waitFor();
      await button(dialog, 'Restore').click();
      await heading('My work').waitFor();
      await page.getByText('Version 3', { exact: true }).waitFor();
    });

    it('[journey] revokes the key, after which the client gets 401', async () => {
      await openPage('API keys');
      await chooseRowAction(page, 'My agent', 'Revoke My agent');
      await button(page.getByRole('dialog'), 'Revoke key').click();
      await row('API keys', 'My agent')
        .getByText(/^revoked/)
        .waitFor();
      await eventually(async () => {
        const outcome = await connect().then(
          (client) => client.close().then(() => 'let in'),
          (error: Error) => error.message,
        );
        assert.match(outcome, /401/);
      });
    });

    it('[journey] signs out, without browser errors during the whole session', async () => {
      const menu = button(page, 'Open menu');
      if (await menu.isVisible()) await menu.click();
      await page.getByRole('button', { name: /owner/ }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await button(page, 'Sign in').waitFor();
      assert.equal((await context.request.get('/api/v1/session')).status(), 401);
      assert.deepEqual([problems.errors, problems.foreignRequests], [[], []]);
    });
  });
