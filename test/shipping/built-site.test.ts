import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, extname, join } from 'node:path';
import { before, describe, it } from 'node:test';
import { buildSite } from '../../docs/site/build.ts';
import { find, type SearchIndex } from '../../docs/site/search.ts';
import { checkPage } from '../support/browser/check-page.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const types: Record<string, string> = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };

const site = 'https://docs.example.com/manual';
const repository = 'https://example.com/toolhost';

/** Pages that readers should find, by search query. */
const pagesByQuery = {
  'rotate key': 'credentials.html',
  'rotate master key': 'operations/master-key.html',
  'rate limit': 'limits.html',
  'local API': 'frameworks.html',
  fastapi: 'frameworks.html',
  'chatgpt laptop': 'claude-and-chatgpt.html',
  'delete server': 'configuration.html',
  'dry run': 'files.html',
  'restore backup': 'operations/backup.html',
  pagination: 'recipes.html',
  'upload file': 'recipes.html',
  'connect claude': 'claude-and-chatgpt.html',
  'connect cursor': 'clients.html',
  nginx: 'operations/proxies.html',
};

/** Serves a folder below a path, as project sites are published. */
async function serveFolder(folder: string) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://site');
    const path = join(folder, decodeURIComponent(pathname).replace('/manual/', '/'));
    const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
    const exists = existsSync(file);
    response.writeHead(exists ? 200 : 404, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    response.end(exists ? readFileSync(file) : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/manual`;
  return { url, close: () => void server.close() };
}

describe('the built documentation site', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder();
  const server = fixtures.start(() => serveFolder(folder));
  const browser = fixtures.start(launchChromium);
  before(() => buildSite(folder, { site, repository }));

  it('[ship 8] links only to pages, headings, and files that exist', () => {
    const html = new Map(
      globSync('**/*.html', { cwd: folder }).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
    );
    const deadLinks = [...html].flatMap(([path, text]) =>
      [...text.matchAll(/ (?:href|src)="([^"]*)"/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => {
          const [file = '', anchor] = target.split('#');
          const linkedPath = join(file === '' ? path : join(dirname(path), file));
          const hasAnchor = anchor === undefined || html.get(linkedPath)?.includes(` id="${anchor}"`);
          return !existsSync(join(folder, linkedPath)) || !hasAnchor;
        })
        .map((target) => `${path}: ${target}`),
    );
    assert.ok(html.size > 30);
    assert.deepEqual(deadLinks, []);
  });

  it('[ship 8] shows configuration placeholders unchanged', () => {
    assert.match(readFileSync(join(folder, 'credentials.html'), 'utf8'), /<code>{{NAME}}<\/code>/);
  });

  it('[ship 8] finds the page of a task first', () => {
    const index = JSON.parse(readFileSync(join(folder, 'assets', 'search-index.json'), 'utf8')) as SearchIndex;
    const firstResults = Object.fromEntries(
      Object.keys(pagesByQuery).map((query) => [query, find(index, query, 1)[0]?.href.replace(/#.*/, '')]),
    );
    assert.deepEqual(firstResults, pagesByQuery);
  });

  it('[ship 8] leads a reader from the search to a page, to the next one, and to the repository', async () => {
    const page = await browser.newPage();
    const { url } = server;
    await page.goto(`${url}/operations/sizing.html`);
    await page.getByPlaceholder('Search').fill('backup');
    await page.getByRole('link', { name: 'Backups' }).locator('visible=true').first().click();
    await page.waitForURL(`${url}/operations/backup.html`);
    assert.match((await page.locator('.contents').textContent()) ?? '', /Contents[\s\S]*A drill/);
    assert.equal(await page.getByRole('link', { name: 'Repository' }).getAttribute('href'), repository);
    await page.locator('[rel=next]').click();
    await page.waitForURL(`${url}/operations/upgrades.html`);
    await page.locator('[rel=prev]').click();
    await page.waitForURL(`${url}/operations/backup.html`);
    await page.close();
  });

  it('[ship 8] describes each page for link previews', () => {
    const html = readFileSync(join(folder, 'views.html'), 'utf8');
    const getMetaContent = (property: string) =>
      new RegExp(`<meta property="og:${property}" content="([^"]*)">`).exec(html)?.[1];
    assert.equal(getMetaContent('title'), 'Views of a server');
    assert.match(getMetaContent('description') ?? '', /^A view exposes a subset of a server(&#39;|')s tools/);
    assert.equal(getMetaContent('url'), `${site}/views.html`);
    assert.ok(existsSync(join(folder, (getMetaContent('image') ?? '').replace(site, ''))));
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 400])
      it(`[ship 8] serves accessible pages: ${colorScheme}, ${width} px`, async () => {
        const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
        for (const path of ['index.html', 'operations/backup.html', 'reference/environment.html']) {
          await page.goto(`${server.url}/${path}`);
          await checkPage(page);
        }
        await page.getByPlaceholder('Search').fill('limits');
        await page.locator('#results a').first().waitFor();
        await checkPage(page);
        await page.close();
      });
  }
});
