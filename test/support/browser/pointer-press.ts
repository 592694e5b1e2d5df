import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { waitForRender } from '../upstreams/held-responses.ts';

/** Presses and releases the mouse button at the center of an element, which must not move in the meantime. */
export async function press(page: Page, target: Locator, whilePressed: () => Promise<void> = async () => undefined) {
  await target.scrollIntoViewIfNeeded();
  const before = await target.boundingBox();
  if (!before) throw new Error('the element is not on the page');
  await page.mouse.move(before.x + before.width / 2, before.y + before.height / 2);
  await page.mouse.down();
  await waitForRender(page);
  await whilePressed();
  const during = await target.boundingBox();
  await page.mouse.up();
  await waitForRender(page);
  // A pressed button moves down by one pixel.
  assert.ok(during && Math.hypot(during.x - before.x, during.y - before.y) < 2, JSON.stringify({ before, during }));
}

/** Waits until the input of a new server has been validated: the messages move the rest of the page. */
export async function waitForValidation(page: Page): Promise<void> {
  await waitForRender(page);
  await page.getByText('Not saved yet').waitFor();
}
