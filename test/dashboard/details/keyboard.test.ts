import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { button, type Dashboard, field, startDashboard } from '../../support/browser/dashboard.ts';
import { isFocused, maxTabStops, tabTo } from '../../support/browser/keyboard.ts';
import { eventually } from '../../support/eventually.ts';

/** Returns the focused element if neither it nor its surroundings look different with the focus. */
const findInvisibleFocus = `(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return 'nothing';
  const near = ['label', '.mantine-Input-input', '.cm-editor'].map((around) => element.closest(around));
  near.push(element, element.parentElement, element.nextElementSibling);
  const look = () => JSON.stringify(near.map((one) => {
    if (!one) return null;
    const { outlineStyle, outlineWidth, borderColor, boxShadow, backgroundColor, transform } = getComputedStyle(one);
    return [outlineStyle === 'none' ? 0 : outlineWidth, borderColor, boxShadow, backgroundColor, transform];
  }));
  const focused = look();
  element.blur();
  const plain = look();
  element.focus({ preventScroll: true });
  return focused === plain ? element.outerHTML.slice(0, 300) : '';
})()`;

/** Returns the focused element if the save bar covers a part of it. */
const findFocusBehindSaveBar = `(() => {
  const element = document.activeElement;
  const bar = document.querySelector('.th-save-bar');
  if (!element || element === document.body) return 'nothing';
  if (bar.contains(element)) return '';
  const { top, bottom, left, right } = element.getBoundingClientRect();
  const covering = bar.getBoundingClientRect();
  const isBehind = bottom > covering.top && right > covering.left && left < covering.right;
  return isBehind && bottom - top < covering.top / 2 ? element.outerHTML.slice(0, 300) : '';
})()`;

describe('the dashboard with a keyboard only', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
    await dashboard.toolhost.createServer(dashboard.config('keyed'));
  });
  after(() => dashboard?.stop());

  const options = { reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } } as const;

  it('creates a server, tries it, and finds it in the list', async () => {
    const use = async (page: Page) => {
      await tabTo(page, page.getByRole('link', { name: 'New server' }));
      await page.keyboard.press('Enter');
      await tabTo(page, page.getByRole('link', { name: /From scratch/ }));
      await page.keyboard.press('Enter');
      for (const [label, text] of [
        ['Name', 'By keyboard'],
        ['Tool name', 'read'],
        ['Tool description', 'Reads an item.'],
        ['URL', `${dashboard.upstream.url}/items/:id`],
      ] as const) {
        await tabTo(page, field(page, label));
        await page.keyboard.type(text);
      }
      await tabTo(page, button(page, 'Add argument'));
      await page.keyboard.press('Enter');
      await tabTo(page, field(page, 'Name of argument 1'));
      await page.keyboard.type('id');
      await tabTo(page, button(page, 'Create server'));
      await page.keyboard.press('Enter');
      await page.getByText('Your server is running').waitFor();
      await tabTo(page, page.getByRole('link', { name: 'Try it' }));
      await page.keyboard.press('Enter');
      await tabTo(page, field(page, 'id'));
      await page.keyboard.type('seven');
      await page.keyboard.press('Enter');
      await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
      await page.goto('/servers');
      await tabTo(page, page.getByRole('link', { name: 'By keyboard' }));
    };
    await dashboard.withPage('/servers', use, { options });
  });

  it('traps the focus in a dialog, closes it with Escape, and returns the focus', async () => {
    const use = async (page: Page) => {
      const opener = button(page, 'New API key').first();
      await tabTo(page, opener);
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog');
      await field(dialog, 'Name').waitFor();
      for (let stop = 0; stop < 12; stop++) {
        await page.keyboard.press('Tab');
        assert.equal(await page.evaluate('document.activeElement.closest("[role=dialog]") !== null'), true);
      }
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      await eventually(async () => assert.equal(await opener.evaluate(isFocused), true));
    };
    await dashboard.withPage('/keys', use, { options });
  });

  it('shows a visible focus at every tab stop', async () => {
    const use = async (page: Page) => {
      for (const path of [
        '/servers',
        '/servers/keyed',
        '/servers/keyed/tools',
        '/servers/keyed/try',
        '/servers/keyed/connect',
        '/keys',
        '/calls',
        '/settings',
      ]) {
        await page.goto(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForLoadState('networkidle');
        for (let stop = 0; stop < maxTabStops; stop++) {
          await page.keyboard.press('Tab');
          const invisibleFocus = await page.evaluate(findInvisibleFocus);
          if (invisibleFocus === 'nothing') break;
          assert.equal(invisibleFocus, '', path);
        }
      }
    };
    await dashboard.withPage('/servers', use, { options });
  });

  it('hides no tab stop behind the save bar', async () => {
    for (const viewport of [options.viewport, { width: 400, height: 700 }]) {
      const use = async (page: Page) => {
        await button(page, 'Save').waitFor();
        await page.waitForLoadState('networkidle');
        let stops = 0;
        for (; stops < maxTabStops; stops++) {
          await page.keyboard.press('Tab');
          const coveredFocus = await page.evaluate(findFocusBehindSaveBar);
          if (coveredFocus === 'nothing') break;
          assert.equal(coveredFocus, '', `${viewport.width} px`);
        }
        assert.ok(stops > 15, `${stops} stops`);
      };
      await dashboard.withPage('/servers/keyed/tools', use, { options: { ...options, viewport } });
    }
  });
});
