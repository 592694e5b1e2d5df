import type { Page } from 'playwright-core';

/** Adds up the layout shifts that no input caused, and names the elements that moved. */
const observeLayoutShifts = `
  globalThis.layoutShifts = [];
  const describe = ({ node }) => node?.nodeType === 1 ? node.tagName + '.' + node.className : String(node?.textContent);
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) layoutShifts.push({ value, moved: sources.map(describe) });
  }).observe({ type: 'layout-shift', buffered: true });`;

type LayoutShift = { value: number; moved: string[] };

/** Time between two responses of the API, longer than a frame, so that every order of rendering is visible. */
const responseGapMs = 80;

/**
 * Loads a page while the API responds to one request after the other, and returns its layout shifts once it is idle.
 */
export async function measureLayoutShift(page: Page, path: string): Promise<{ total: number; shifts: LayoutShift[] }> {
  let previous = Promise.resolve();
  await page.route('**/api/**', (route) => {
    previous = previous.then(() => new Promise((resolve) => setTimeout(resolve, responseGapMs)));
    return previous.then(() => route.continue());
  });
  await page.addInitScript(observeLayoutShifts);
  await page.goto(path, { waitUntil: 'networkidle' });
  const shifts = (await page.evaluate('layoutShifts')) as LayoutShift[];
  return { total: shifts.reduce((sum, { value }) => sum + value, 0), shifts };
}
