import type { Page } from 'playwright-core';

/** Returns the labels of the links in the side bar and in the tabs of a page, in their order. */
export async function readNavigationLabels(page: Page): Promise<string[]> {
  const texts = await page.getByRole('navigation').getByRole('link').allInnerTexts();
  return texts.map((text) => text.trim());
}
