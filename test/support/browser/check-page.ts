import assert from 'node:assert/strict';
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Asserts that a page does not scroll horizontally and that axe finds no serious violation once animations have ended. */
export async function checkPage(page: Page): Promise<void> {
  const finiteAnimations = 'document.getAnimations().filter((a) => a.effect.getTiming().iterations !== Infinity)';
  await page.evaluate(`Promise.allSettled(${finiteAnimations}.map((animation) => animation.finished))`);
  const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  assert.ok(overflow <= 0, `${page.url()} is ${overflow} px too wide`);
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(
    serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
    [],
  );
}
