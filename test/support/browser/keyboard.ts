import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

/** Maximum number of tab stops; no page has as many. */
export const maxTabStops = 90;

/** Returns true if an element has the focus; for use with `evaluate`. */
export const isFocused = new Function('element', 'return element === document.activeElement') as (
  element: unknown,
) => boolean;

/** Presses Tab until the target has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let stop = 0; stop < maxTabStops; stop++) {
    if (await target.evaluate(isFocused)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${target} cannot be reached with Tab`);
}

/** Tabs to the target and presses a key. */
export async function pressKeyOn(page: Page, target: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press(key);
}

/** Tabs to the target and replaces its text. */
export async function typeInto(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Control+a');
  await page.keyboard.type(text);
}
