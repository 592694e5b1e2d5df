import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

/** More stops than any page has. */
export const mostStops = 90;

/** For `evaluate`: whether an element has the focus. */
export const isFocused = new Function('element', 'return element === document.activeElement') as (
  element: unknown,
) => boolean;

/** Goes from stop to stop until this has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let stop = 0; stop < mostStops; stop++) {
    if (await target.evaluate(isFocused)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${target} is not reached`);
}

/** Goes there and presses a key. */
export async function pressAt(page: Page, target: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press(key);
}

/** Goes there and types in place of what is there. */
export async function typeAt(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('Control+a');
  await page.keyboard.type(text);
}
