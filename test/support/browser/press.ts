import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { drawn } from '../upstreams/held-answers.ts';

/** Presses the pointer's button in the middle of something, and lets go where it was pressed. */
export async function press(page: Page, target: Locator, meanwhile: () => Promise<void> = async () => undefined) {
  await target.scrollIntoViewIfNeeded();
  const before = await target.boundingBox();
  if (!before) throw new Error('it is not on the page');
  await page.mouse.move(before.x + before.width / 2, before.y + before.height / 2);
  await page.mouse.down();
  await drawn(page);
  await meanwhile();
  const during = await target.boundingBox();
  await page.mouse.up();
  await drawn(page);
  // A pressed button goes down by a pixel.
  assert.ok(during && Math.hypot(during.x - before.x, during.y - before.y) < 2, JSON.stringify({ before, during }));
}

/** When what was typed into a new server has been checked: what the check found moves the rest of the page. */
export async function checked(page: Page): Promise<void> {
  await drawn(page);
  await page.getByText('Not saved yet').waitFor();
}
