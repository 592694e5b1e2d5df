import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { button, chooseRowAction, field } from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';

/** Runs all rules once per layout, and only color rules in the other two views. */
const views = [
  { width: 1440, colorScheme: 'light', rules: 'all' },
  { width: 1440, colorScheme: 'dark', rules: 'colors' },
  { width: 400, colorScheme: 'light', rules: 'colors' },
  { width: 400, colorScheme: 'dark', rules: 'all' },
] as const;

type State = readonly [path: string, ready: (page: Page) => Promise<void>, more?: (page: Page) => Promise<void>];

const waitForHeading = (name: string | RegExp) => (page: Page) =>
  page.getByRole('heading', { level: 1, name }).waitFor();
const waitForTable = (table: string) => (page: Page) => page.getByRole('table', { name: table }).first().waitFor();

const pages: readonly State[] = [
  ['/servers', waitForTable('Servers')],
  ['/servers/new', waitForHeading('New server')],
  ['/servers/new/gallery', waitForHeading('Start from an example')],
  ['/servers/new?from=form', waitForHeading('New server'), (page) => button(page, 'Create server').click()],
  ['/servers/new?from=json', waitForHeading('New server')],
  ['/', waitForTable('Failures')],
  ['/servers/items', waitForTable('Failures')],
  ['/servers/items/tools', waitForTable('Tools'), (page) => page.getByRole('checkbox').first().click()],
  ['/servers/items/tools?tool=read', waitForHeading('Items'), (page) => button(page, 'Advanced').click()],
  ['/servers/people', waitForHeading('People')],
  ['/servers/people/settings', waitForHeading('People'), (page) => button(page, 'Advanced login settings').click()],
  ['/servers/team/settings', waitForHeading('Team'), (page) => button(page, 'Validation').first().click()],
  ['/servers/team/connect', waitForHeading('Team')],
  ['/servers/items/calls', waitForTable('Calls')],
  ['/servers/items/try', waitForHeading('Items'), callTool],
  ['/servers/items/try?tool=read', waitForHeading('Items'), (page) => button(page, 'Call tool').click()],
  ['/servers/items/connect', waitForHeading('Items'), (page) => button(page, 'Check connection').click()],
  ['/servers/people/connect', waitForHeading('People')],
  ['/servers/items/settings/secrets', waitForTable('Secrets')],
  ['/servers/people/settings/logins', waitForHeading('People')],
  [
    '/servers/items/settings/versions',
    waitForHeading('Items'),
    (page) => chooseRowAction(page, 'Version 1', 'Compare version 1'),
  ],
  [
    '/servers/items/settings/versions',
    waitForHeading('Items'),
    (page) => chooseRowAction(page, 'Version 1', 'Restore version 1'),
  ],
  ['/servers/items/settings/limits', waitForHeading('Items')],
  ['/servers/items/settings/capture', waitForHeading('Items')],
  ['/servers/items/try/playground', waitForHeading('Items')],
  ['/servers/items/settings/delete', waitForHeading('Items'), askToDelete],
  ['/servers/unknown', waitForHeading('Page not found')],
  ['/keys', waitForTable('API keys')],
  ['/keys', waitForTable('API keys'), (page) => button(page, 'New API key').click()],
  ['/keys', waitForTable('API keys'), createKey],
  ['/calls', waitForTable('Calls'), (page) => button(page, 'By tool').click()],
  ['/calls', waitForTable('Calls'), (page) => button(page, /read/).first().click()],
  ['/audit', waitForTable('Changes')],
  ['/usage', waitForTable('Usage by key and server')],
  ['/notifications', waitForHeading('Notifications'), (page) => button(page, 'New webhook').click()],
  ['/settings', waitForTable('Members')],
  ['/keys', waitForTable('API keys'), loseConnection],
];

const emptyPages: readonly State[] = [
  ['/', waitForHeading('Home')],
  ['/servers', waitForHeading('Servers')],
  ['/keys', waitForHeading('API keys')],
  ['/calls', waitForHeading('Calls')],
  ['/audit', waitForHeading('Audit')],
  ['/notifications', waitForHeading('Notifications')],
  ['/usage', waitForHeading('Usage')],
];

async function callTool(page: Page): Promise<void> {
  await field(page, 'q').fill('x');
  await button(page, 'Call tool').click();
  await page.getByRole('region', { name: 'Result' }).waitFor();
}

async function askToDelete(page: Page): Promise<void> {
  await button(page, 'Delete server…').click();
  await field(page, 'Type items to confirm').fill('other');
}

async function createKey(page: Page): Promise<void> {
  await button(page, 'New API key').click();
  await field(page.getByRole('dialog'), 'Name').fill('Mine');
  await button(page, 'Create key').click();
  await page.getByText('Copy it now').waitFor();
}

async function loseConnection(page: Page): Promise<void> {
  await page.route('**/api/v1/audit*', (route) => route.abort());
  await page.getByRole('link', { name: 'Audit', exact: true }).click();
  await page.getByText('Connection lost').waitFor();
}

describe('the layout of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream } = dashboard;
    const tool = buildToolAt(`${upstream.url}/items`, {
      name: 'read',
      input_schema: { q: { type: 'string', description: 'What to look for' } },
      headers: { Accept: 'application/json' },
    });
    const items = { name: 'Items', slug: 'items', description: 'Reads.', tools: [tool] };
    await toolhost.createServer({ ...items, authentication: { type: 'Bearer', token: '{{KEY}}' } });
    await toolhost.createServer({
      name: 'People',
      slug: 'people',
      oauth: {
        authorization_url: 'https://id.example.com/authorize',
        token_url: 'https://id.example.com/token',
        client_id: 'toolhost',
        client_secret: 'of-the-test',
        scopes: ['read'],
      },
      tools: [tool],
    });
    await toolhost.createServer({
      name: 'Team',
      slug: 'team',
      authentication: { type: 'Bearer', token: '{{TOKEN}}' },
      login: {
        allow: { members: true, domains: ['example.com'] },
        views: [{ view: 'all' }],
        fields: [{ name: 'TOKEN', label: 'API token', help: 'https://example.com/tokens' }],
      },
      views: { all: { tools: ['read'] } },
      tools: [tool],
    });
    await toolhost.rest('PUT', '/servers/items/secrets/KEY', { body: { value: 'of-the-test' } });
    await toolhost.rest('PATCH', '/servers/items', { body: { description: 'Reads items.' } });
    await toolhost.rest('POST', '/servers/items/capture', { body: { hours: 1 } });
    const key = await toolhost.createKey();
    await toolhost.callTool('items', key, 'read', { q: 'x' });
    await toolhost.callTool('items', key, 'read', {});
  });

  /** Returns horizontal overflow and serious axe violations. */
  async function findProblems(page: Page, pageName: string): Promise<string[]> {
    await page.waitForLoadState('networkidle');
    await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
    await page.evaluate(axe.source);
    const problems: string[] = [];
    for (const { width, colorScheme, rules } of views) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      const viewName = `${pageName}, ${colorScheme}, ${width} px`;
      const tooWide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      if (tooWide > 0) problems.push(`${viewName}: ${tooWide} px too wide`);
      const runOnly =
        rules === 'colors' ? ['color-contrast'] : ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
      const options = { resultTypes: ['violations'], runOnly };
      const { violations, passes } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as axe.AxeResults;
      assert.ok(passes.length + violations.length > 0, 'axe checked nothing');
      for (const { id, impact, nodes } of violations) {
        if (impact !== 'serious' && impact !== 'critical') continue;
        for (const node of nodes)
          problems.push(`${viewName}: ${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`);
      }
    }
    return problems;
  }

  async function findProblemsInStates(page: Page, states: readonly State[]): Promise<string[]> {
    const problems: string[] = [];
    for (const [path, waitUntilReady, interact] of states) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.goto(path);
      await waitUntilReady(page);
      await interact?.(page);
      problems.push(...(await findProblems(page, path)));
    }
    return problems;
  }

  const middle = Math.ceil(pages.length / 2);
  const viewerPages: State[] = [
    ['/servers/items', waitForHeading('Items')],
    ['/servers/items/connect', waitForHeading('Items')],
    ['/servers/items/settings/limits', waitForHeading('Items')],
    ['/settings', waitForTable('Members')],
  ];
  for (const [name, states, person] of [
    ['in both color schemes, wide and narrow: the first half of the pages', pages.slice(0, middle), undefined],
    ['in both color schemes, wide and narrow: the second half of the pages', pages.slice(middle), undefined],
    ['in an empty workspace', emptyPages, { name: 'New', workspace: 'wsp_empty' }],
    ['for a viewer', viewerPages, { name: 'Vera', role: 'viewer' }],
  ] as const)
    it(`fits and is accessible ${name}`, async (t) => {
      const page = await openPage(t, dashboard, '/servers', person && { person });
      assert.deepEqual(await findProblemsInStates(page, states), []);
    });

  it('fits and is accessible when signed out and with the open menu', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    await page.setViewportSize({ width: 400, height: 900 });
    await button(page, 'Open menu').click();
    await page.getByRole('link', { name: 'API keys', exact: true }).waitFor();
    assert.deepEqual(await findProblems(page, 'the menu'), []);
    await page.context().clearCookies();
    await page.goto('/');
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
    assert.deepEqual(await findProblems(page, 'the landing page'), []);
  });
});
