import assert from 'node:assert/strict';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { buildSite } from '../../docs/site/build.ts';
import { root } from '../files.ts';
import { checkPage } from '../support/browser/check-page.ts';
import { launchChromium } from '../support/browser/chromium.ts';

const types: Record<string, string> = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };

/** Serves a folder below a path, as sites of projects are published. */
async function serveFolder(folder: string): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const path = join(
      folder,
      decodeURIComponent(new URL(request.url ?? '', 'http://site').pathname).replace('/manual/', '/'),
    );
    const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
    const isThere = existsSync(file);
    response.writeHead(isThere ? 200 : 404, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    response.end(isThere ? readFileSync(file) : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/manual`, server };
}

describe('the documentation site', () => {
  let folder: string;
  let browser: Browser;
  let server: Server;
  let url: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-site-'));
    await buildSite(folder);
    browser = await launchChromium();
    ({ url, server } = await serveFolder(folder));
  });
  after(async () => {
    await browser?.close();
    server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('[ship 8] links only to pages, headings and files that it has', () => {
    const html = new Map(
      globSync('**/*.html', { cwd: folder }).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
    );
    const dead = [...html].flatMap(([path, text]) =>
      [...text.matchAll(/ (?:href|src)="([^"]*)"/g)]
        .map(([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => {
          const [file = '', anchor] = target.split('#');
          const found = join(file === '' ? path : join(dirname(path), file));
          const isAnchor = anchor === undefined || html.get(found)?.includes(` id="${anchor}"`);
          return !existsSync(join(folder, found)) || !isAnchor;
        })
        .map((target) => `${path}: ${target}`),
    );
    assert.ok(html.size > 30);
    assert.deepEqual(dead, []);
  });

  it('[ship 8] has a whole search: the build writes its files, not Pagefind, which can end too early', {
    timeout: 120_000,
  }, async () => {
    const program = globSync('node_modules/@pagefind/*/bin/pagefind_extended', { cwd: root })[0] ?? assert.fail();
    const other = join(folder, 'other');
    const wrapper = join(folder, 'pagefind-that-cannot-write');
    writeFileSync(wrapper, `#!/bin/sh\nulimit -f 0\nexec '${join(root, program)}' "$@"\n`, { mode: 0o755 });
    process.env.PAGEFIND_EXTENDED_BINARY_PATH = wrapper;
    try {
      await buildSite(other);
    } finally {
      delete process.env.PAGEFIND_EXTENDED_BINARY_PATH;
    }
    const filesOf = (site: string) =>
      globSync('pagefind/**/*', { cwd: site })
        .filter((path) => statSync(join(site, path)).isFile())
        .map((path) => [path, statSync(join(site, path)).size])
        .toSorted();
    assert.deepEqual(filesOf(other), filesOf(folder));
    assert.ok(filesOf(other).length > 50);
  });

  it('[ship 8] finds pages by their words', async () => {
    const page = await browser.newPage();
    await page.goto(`${url}/operations/sizing.html`);
    await page.getByPlaceholder('Search').fill('backup');
    const found = page.locator('#search .pagefind-ui__result-link', { hasText: 'Backups' }).first();
    await found.click();
    await page.waitForURL(`${url}/operations/backup.html*`);
    await page.close();
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 400]) {
      it(`[ship 8] can be read by everybody: ${colorScheme}, ${width} px`, async () => {
        const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
        for (const path of ['index.html', 'operations/backup.html', 'reference/environment.html']) {
          await page.goto(`${url}/${path}`);
          await checkPage(page);
        }
        await page.getByPlaceholder('Search').fill('limits');
        await page.locator('#search .pagefind-ui__result-link').first().waitFor();
        // Results that are still read are shown as grey bars, which are text without contrast.
        await page.waitForFunction("document.querySelector('#search .pagefind-ui__loading') === null");
        await checkPage(page);
        await page.close();
      });
    }
  }
});
