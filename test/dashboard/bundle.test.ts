import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { assertSome } from '../support/assert-lists.ts';
import { createContext, createSignedInContext } from '../support/browser/dashboard.ts';
import { useDashboard } from '../support/browser/use-dashboard.ts';

const folder = join(import.meta.dirname, '..', '..', 'dist', 'web');

/** Maximum compressed size and number of requests of a page load. */
const landingLimits = { bytes: 60_000, requests: 3 };
const firstPageLimits = { bytes: 280_000, requests: 15 };

type Chunk = { file: string; imports?: string[]; dynamicImports?: string[]; css?: string[] };

describe('the built dashboard', () => {
  const manifest = () =>
    JSON.parse(readFileSync(join(folder, '.vite', 'manifest.json'), 'utf8')) as Record<string, Chunk>;

  function getLoadedFiles(...entries: string[]): string[] {
    const chunks = manifest();
    const loadedFiles = new Set<string>();
    const addChunk = (name: string) => {
      const chunk = chunks[name] ?? assert.fail(`${name} was not built; built: ${Object.keys(chunks).join(', ')}`);
      if (loadedFiles.has(chunk.file)) return;
      loadedFiles.add(chunk.file);
      for (const inner of chunk.imports ?? []) addChunk(inner);
    };
    for (const entry of entries) addChunk(entry);
    return [...loadedFiles];
  }

  it('loads the charts and the editor only on pages that need them', () => {
    const first = getLoadedFiles('index.html').map((file) => readFileSync(join(folder, file), 'utf8'));
    for (const [module, words] of [
      ['src/calls/call-charts.tsx', 'Median (p50)'],
      ['src/servers/editor/server-editor.tsx', 'Fix before saving'],
      ['src/servers/editor/json/json-view.tsx', 'cm-lineWrapping'],
    ] as const) {
      const moduleTexts = getLoadedFiles(module).map((file) => readFileSync(join(folder, file), 'utf8'));
      assertSome(moduleTexts, (text) => text.includes(words), module);
      assert.ok(!first.some((text) => text.includes(words)), module);
    }
  });

  it('has one page without inline scripts, inline styles, or resources of other sites', () => {
    const html = readFileSync(join(folder, 'index.html'), 'utf8');
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc="\.\/)|<style|\sstyle=|\son\w+=/);
    assert.doesNotMatch(html, /(?:src|href)="(?!\.\/)/);
  });
});

describe('the dashboard in a browser', () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('items'));
    const key = await toolhost.createKey();
    for (let index = 1; index <= 8; index++) {
      await toolhost.createServer(dashboard.config(`items-${index}`));
      for (const args of [{ count: 1 }, { count: 2 }, {}]) await toolhost.callTool(`items-${index}`, key, 'read', args);
    }
  });

  /** Opens a page and returns its requests with their compressed sizes, once the network is idle. */
  async function measurePageLoad(context: BrowserContext, path: string): Promise<[address: string, bytes: number][]> {
    const page = await context.newPage();
    const network = await context.newCDPSession(page);
    const responses = new Map<string, [string, number]>();
    network.on('Network.responseReceived', ({ requestId, response }) => responses.set(requestId, [response.url, 0]));
    network.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const response = responses.get(requestId);
      if (response) response[1] = encodedDataLength;
    });
    await network.send('Network.enable');
    await page.goto(path, { waitUntil: 'networkidle' });
    return [...responses.values()];
  }

  function assertPageLoad(responses: [string, number][], limits: { bytes: number; requests: number }): void {
    const bytes = responses.reduce((sum, [, size]) => sum + size, 0);
    const isWithinLimits = bytes <= limits.bytes && responses.length <= limits.requests;
    assert.ok(isWithinLimits, `${bytes} bytes in ${responses.length} requests: ${JSON.stringify(responses, null, 1)}`);
  }

  it('loads at most 280 KB in 15 requests for Home with calls, on an empty cache', async () => {
    const context = await createSignedInContext(dashboard.browser, dashboard.toolhost, { name: 'Anna' });
    const responses = await measurePageLoad(context, '/');
    for (const end of ['.css', '.woff2'])
      assertSome(responses, ([address]) => address.endsWith(end), `${end} was not measured`);
    assertPageLoad(responses, firstPageLimits);
  });

  it('links to the sign-in page, and back to the current page, when the session has expired', async () => {
    const context = await createContext(dashboard.browser, dashboard.toolhost);
    await context.addCookies([{ name: 'toolhost-session', value: 'x'.repeat(43), url: dashboard.toolhost.url }]);
    const page = await context.newPage();
    await page.goto('/servers?tag=a');
    await page.getByText('Your session has ended.').waitFor();
    const signIn = page.getByRole('link', { name: 'Sign in', exact: true });
    assert.equal(await signIn.getAttribute('href'), '/login?return_to=%2Fservers%3Ftag%3Da');
  });

  it('loads at most 60 KB without scripts for a signed-out user', async () => {
    const context = await createContext(dashboard.browser, dashboard.toolhost);
    const responses = await measurePageLoad(context, '/servers?tag=a%26b');
    assertPageLoad(responses, landingLimits);
    assert.ok(!responses.some(([address]) => address.endsWith('.js')));
    assertSome(responses, ([address]) => address.endsWith('.woff2'), 'the font was not loaded');
    const [page] = context.pages();
    assert.equal(await page?.locator('form').getAttribute('action'), '/login?return_to=%2Fservers%3Ftag%3Da%2526b');
  });
});
