import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../eventually.ts';

/**
 * Records the text of every toast in the page. A toast disappears after 4 s, and a test on a busy machine may check only
 * later.
 */
const recordToastsScript = `window.toasts = [];
new MutationObserver((changes) => {
  for (const { addedNodes } of changes)
    for (const node of addedNodes)
      if (node instanceof Element) {
        const inside = [...node.querySelectorAll('.mantine-Notification-root')];
        for (const toast of node.matches('.mantine-Notification-root') ? [node] : inside)
          window.toasts.push(toast.textContent);
      }
}).observe(document, { subtree: true, childList: true });`;

/** Records the toasts of every page that the context opens from now on. */
export async function recordToasts(context: BrowserContext): Promise<void> {
  await context.addInitScript(recordToastsScript);
}

/**
 * Waits until the current document has shown a toast with this text, and consumes it: a second wait for the same text
 * needs another toast. A navigation or a reload discards the recorded toasts.
 */
export async function waitForToast(page: Page, text: string | RegExp): Promise<void> {
  await eventually(async () => {
    const shown: string[] = await page.evaluate('window.toasts');
    const at = shown.findIndex((toast) => (typeof text === 'string' ? toast.includes(text) : text.test(toast)));
    assert.ok(at >= 0, `no toast with ${text}; shown: ${JSON.stringify(shown)}`);
    await page.evaluate(`window.toasts.splice(${at}, 1)`);
  });
}
