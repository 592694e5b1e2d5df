import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { button, field } from '../../support/browser/dashboard.ts';
import { isFocused, maxTabStops, pressKeyOn, tabTo, typeInto } from '../../support/browser/keyboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';

/** Returns the focused element's HTML if its focus is invisible, '' if it is visible, and 'nothing' without a focus. */
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

/** Returns the focused element's HTML if the save bar covers a part of it, '' if not, and 'nothing' without a focus. */
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
  const dashboard = useDashboard();
  before(async () => {
    await dashboard.toolhost.createServer(dashboard.config('keyed'));
  });

  it('creates a server, tries it, and finds it in the list', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    await pressKeyOn(page, page.getByRole('link', { name: 'New server' }));
    await pressKeyOn(page, page.getByRole('link', { name: /From scratch/ }));
    for (const [label, text] of [
      ['Name', 'By keyboard'],
      ['Tool name', 'read'],
      ['Tool description', 'Reads an item.'],
      ['URL', `${dashboard.upstream.url}/items/:id`],
    ] as const) {
      await typeInto(page, field(page, label), text);
    }
    await pressKeyOn(page, button(page, 'Add argument'));
    await typeInto(page, field(page, 'Name of argument 1'), 'id');
    await pressKeyOn(page, button(page, 'Create server'));
    await page.getByText('Your server is running').waitFor();
    await pressKeyOn(page, page.getByRole('link', { name: 'Try it' }));
    await typeInto(page, field(page, 'id'), 'seven');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    await page.goto('/servers');
    await tabTo(page, page.getByRole('link', { name: 'By keyboard' }));
  });

  it('traps the focus in a dialog, closes it with Escape, and returns the focus', async (t) => {
    const page = await openPage(t, dashboard, '/keys');
    const opener = button(page, 'New API key').first();
    await pressKeyOn(page, opener);
    const dialog = page.getByRole('dialog');
    await field(dialog, 'Name').waitFor();
    for (let stop = 0; stop < 12; stop++) {
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate('document.activeElement.closest("[role=dialog]") !== null'), true);
    }
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await eventually(async () => assert.equal(await opener.evaluate(isFocused), true));
  });

  it('shows a visible focus at every tab stop', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    const sections = ['', '/tools', '/try', '/connect', '/try/playground', '/settings/versions'];
    const serverPaths = sections.map((path) => `/servers/keyed${path}`);
    for (const path of ['/', '/servers', ...serverPaths, '/keys', '/calls', '/notifications', '/settings']) {
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
  });

  it('hides no tab stop behind the save bar', async (t) => {
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 400, height: 700 },
    ]) {
      const page = await openPage(t, dashboard, '/servers/keyed/settings', { options: { viewport } });
      await field(page, 'Name').first().fill('Changed');
      await button(page, 'Save').waitFor();
      await page.waitForLoadState('networkidle');
      let stops = 0;
      for (; stops < maxTabStops; stops++) {
        await page.keyboard.press('Tab');
        const coveredFocus = await page.evaluate(findFocusBehindSaveBar);
        if (coveredFocus === 'nothing') break;
        assert.equal(coveredFocus, '', `${viewport.width} px`);
      }
      assert.ok(stops > 5, `${stops} stops`);
    }
  });
});
