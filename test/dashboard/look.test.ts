import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { button, chooseRowAction } from '../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';

/** Computed styles of the visible elements of a page. */
type Look = { weights: string[]; sizes: string[]; neutralBorders: string[]; nestedPanels: string[]; overflow: number };

/** Maximum difference between the channels of a gray. */
const maxGrayDifference = 40;

/**
 * Collects the look of a page. A panel is a large box with a rounded border on all sides. A border with the color of its
 * own element, such as that of a checked box, is a fill.
 */
const collectLook = `(() => {
  const weights = new Set(), sizes = new Set(), neutralBorders = new Set(), panels = [];
  const isNeutral = (color) => {
    const [r, g, b, alpha = 1] = color.match(/[\\d.]+/g).map(Number);
    return alpha > 0.01 && Math.max(r, g, b) - Math.min(r, g, b) <= ${maxGrayDifference};
  };
  const describe = (element) => element.tagName + '.' + element.className;
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest('svg')) continue;
    const style = getComputedStyle(element);
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
    if (hasText || element.matches('input, textarea')) {
      weights.add(style.fontWeight);
      sizes.add(style.fontSize);
    }
    const colors = ['Top', 'Right', 'Bottom', 'Left']
      .filter((side) => parseFloat(style['border' + side + 'Width']) > 0)
      .map((side) => style['border' + side + 'Color'])
      .filter((color) => isNeutral(color) && color !== style.backgroundColor);
    for (const color of colors) neutralBorders.add(color);
    const isLarge = element.clientWidth > 200 && element.clientHeight > 56;
    if (colors.length === 4 && isLarge && parseFloat(style.borderTopLeftRadius) >= 8) panels.push(element);
  }
  const nestedPanels = panels.filter((panel) => panels.some((other) => other !== panel && other.contains(panel)));
  const overflow = document.documentElement.scrollWidth - innerWidth;
  return { weights: [...weights], sizes: [...sizes], neutralBorders: [...neutralBorders], nestedPanels: nestedPanels.map(describe), overflow };
})()`;

const paths = [
  '/',
  '/servers',
  '/servers/new',
  '/servers/new/import',
  '/servers/new/gallery',
  '/servers/shop',
  '/servers/shop/tools',
  '/servers/shop/tools?tool=read',
  '/servers/shop/settings',
  '/servers/shop/try',
  '/servers/shop/calls',
  '/servers/shop/connect',
  '/servers/unset/settings',
  '/keys',
  '/calls',
  '/usage',
  '/audit',
  '/notifications',
  '/settings',
  '/api-reference',
  '/servers/unknown',
];

/** Returns the text color of an element; for use with `evaluate`. */
const getColor = new Function('element', 'return getComputedStyle(element).color') as (element: unknown) => string;

const views = [1440, 400].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

async function waitUntilLoaded(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.waitForLoadState('networkidle');
  await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
}

describe('the look of the dashboard', () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    upstream.on('GET /items', ({ url }) => ({ status: Number(new URL(url, upstream.url).searchParams.get('count')) }));
    await toolhost.createServer(config('shop'));
    await toolhost.createServer(config('unset', { authentication: { type: 'Bearer', token: '{{NOT_SET}}' } }));
    const key = await toolhost.createKey();
    for (const count of [200, 503, 404, 401]) await toolhost.callTool('shop', key, 'read', { count });
    await toolhost.callTool('shop', key, 'read', {});
    await toolhost.callTool('unset', key, 'read', { count: 200 });
  });

  it('has three weights, six sizes, two neutral borders, and no panel in another on every page', async (t) => {
    const page = await openPage(t, dashboard, '/', { options: { reducedMotion: 'reduce' } });
    const problems: string[] = [];
    for (const path of paths) {
      await page.goto(path);
      await waitUntilLoaded(page);
      for (const { width, colorScheme } of views) {
        await page.setViewportSize({ width, height: 900 });
        await page.emulateMedia({ colorScheme });
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
        const { weights, sizes, neutralBorders, nestedPanels, overflow } = (await page.evaluate(collectLook)) as Look;
        const report = (problem: string) => problems.push(`${path}, ${colorScheme}, ${width} px: ${problem}`);
        if (weights.some((weight) => !['400', '500', '600'].includes(weight))) report(`weights ${weights.join()}`);
        if (sizes.some((size) => !['12px', '13px', '14px', '16px', '20px', '24px'].includes(size)))
          report(`sizes ${sizes.join()}`);
        if (neutralBorders.length > 2) report(`borders ${neutralBorders.join(' ')}`);
        if (nestedPanels.length > 0) report(`nested panels ${nestedPanels.join(' ')}`);
        if (overflow > 0) report(`${overflow} px too wide`);
      }
    }
    assert.deepEqual(problems, []);
  });

  it('draws its first page with its own font, which never moves the text', async (t) => {
    const page = await openPage(t, dashboard, '/');
    await waitUntilLoaded(page);
    const fonts = await page.evaluate(
      `[...document.fonts].filter(({ family }) => family.includes('Geist')).map(({ family, display, status }) => [family, display, status].join(' '))`,
    );
    assert.ok(
      (fonts as string[]).some((font) => /^"?Geist"? optional loaded$/.test(font)),
      JSON.stringify(fonts),
    );
    const preloaded = await page.locator('link[rel=preload][as=font]').getAttribute('href');
    assert.match(preloaded ?? '', /\/assets\/geist-.*\.woff2$/);
  });

  it('does not move the page by a pixel when a dialog, a drawer, or the palette opens', async (t) => {
    const page = await openPage(t, dashboard, '/keys', { options: { viewport: { width: 1440, height: 300 } } });
    await waitUntilLoaded(page);
    const measure = () =>
      page.evaluate(
        `[...document.querySelectorAll('h1, aside, table, .th-page')].map((e) => JSON.stringify(e.getBoundingClientRect())).join()`,
      );
    const before = await measure();
    const assertSame = async () => {
      await page.getByRole('dialog').waitFor();
      assert.equal(await measure(), before);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      assert.equal(await measure(), before);
    };
    await button(page, 'New API key').click();
    await assertSame();
    await page.keyboard.press('Control+k');
    await assertSame();
  });

  it('groups failures on Home by who has to act, and shows those of agents without red', async (t) => {
    const page = await openPage(t, dashboard, '/');
    const failures = page.getByRole('table', { name: 'Failures' });
    await failures.waitFor();
    const texts = await failures.locator('tbody tr').evaluateAll((rows) => rows.map(({ textContent }) => textContent));
    const headings = ['Setup: you have to act', 'API failed', 'Agent’s mistake'];
    const findGroup = (text: string) => {
      const at = texts.findIndex((row) => row?.includes(text));
      return texts.slice(0, at).findLast((row) => headings.includes(row ?? ''));
    };
    assert.deepEqual(
      texts.filter((text) => headings.includes(text ?? '')),
      headings,
    );
    assert.equal(findGroup('API returned 401'), 'Setup: you have to act');
    assert.equal(findGroup('Secret missing'), 'Setup: you have to act');
    assert.equal(findGroup('API returned 503'), 'API failed');
    assert.equal(findGroup('API returned 404'), 'Agent’s mistake');
    assert.equal(findGroup('Invalid arguments'), 'Agent’s mistake');
    const readColor = (text: string) => failures.getByText(text).evaluate(getColor);
    assert.equal(await readColor('Secret missing'), await readColor('API returned 503'));
    assert.notEqual(await readColor('Invalid arguments'), await readColor('API returned 503'));
  });

  it('puts the actions of a row into one menu, which is named like the row', async (t) => {
    await dashboard.toolhost.rest('POST', '/keys', { body: { name: 'Reporting', scopes: ['call'] } });
    const page = await openPage(t, dashboard, '/keys');
    const row = page.getByRole('row').filter({ hasText: 'Reporting' });
    await row.waitFor();
    assert.equal(await row.getByRole('button').count(), 1);
    await chooseRowAction(page, 'Reporting', 'Calls of Reporting');
    await page.waitForURL('**/calls?key=*');
  });

  it('labels the charts in whole numbers and hours', async (t) => {
    const page = await openPage(t, dashboard, '/calls');
    const chart = page.getByRole('region', { name: /^Calls per hour: / });
    await chart.locator('svg').first().waitFor();
    const labels = await chart.locator('.recharts-cartesian-axis-tick-value').allTextContents();
    const times = labels.filter((label) => label.includes(':'));
    assert.ok(times.length >= 3 && times.every((time) => /^(00|06|12|18):00$/.test(time)), labels.join());
    const numbers = labels.filter((label) => !label.includes(':')).map(Number);
    const step = (numbers[1] ?? 0) - (numbers[0] ?? 0);
    assert.match(String(step), /^[125]0*$/);
    assert.ok(numbers.length >= 3 && numbers.length <= 4, labels.join());
  });
});
