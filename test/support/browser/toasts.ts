import assert from 'node:assert/strict';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../eventually.ts';

/**
 * Keeps the text of every toast that the page shows. A toast is gone after 4 s, and a test on a busy machine may look
 * only later, so the page itself has to watch.
 */
const keepToasts = `window.toasts = [];
new MutationObserver((changes) => {
  for (const { addedNodes } of changes)
    for (const node of addedNodes)
      if (node instanceof Element) {
        const inside = [...node.querySelectorAll('.mantine-Notification-root')];
        for (const toast of node.matches('.mantine-Notification-root') ? [node] : inside)
          window.toasts.push(toast.textContent);
      }
}).observe(document, { subtree: true, childList: true });`;

/** Watches the toasts of every page of a context that is opened from now on. */
export async function watchToasts(context: BrowserContext): Promise<void> {
  await context.addInitScript(keepToasts);
}

/**
 * Waits until the document that the page shows has had a toast with this text, and takes it: a second wait for the same
 * text is for another toast. Those of the documents before a navigation or a reload are gone.
 */
export async function toasted(page: Page, text: string | RegExp): Promise<void> {
  await eventually(async () => {
    const shown: string[] = await page.evaluate('window.toasts');
    const at = shown.findIndex((toast) => (typeof text === 'string' ? toast.includes(text) : text.test(toast)));
    assert.ok(at >= 0, `no toast says ${text}; shown: ${JSON.stringify(shown)}`);
    await page.evaluate(`window.toasts.splice(${at}, 1)`);
  });
}
