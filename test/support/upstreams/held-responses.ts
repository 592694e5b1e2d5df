import assert from 'node:assert/strict';
import type { Page, Route } from 'playwright-core';
import { eventually } from '../eventually.ts';

type Release = () => Promise<void>;

/** Responses of the service that reach a page only when a test releases them. */
export type HeldResponses = {
  /**
   * Waits for the response to the next request, and returns a function that releases it and resolves when the page has
   * rendered it.
   */
  nextResponse(): Promise<Release>;
  /** Stops holding responses and releases the held ones. */
  releaseAll(): Promise<void>;
};

/** Resolves when the page has rendered everything that has happened so far. */
export async function waitForRender(page: Page): Promise<void> {
  await page.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
  );
}

/** Holds the responses to requests with this method, path, and text in their body. */
export async function holdResponses(
  page: Page,
  method: string,
  path: string,
  bodyFragment = '',
): Promise<HeldResponses> {
  const waiting: Release[] = [];
  let isHolding = true;
  const hold = async (route: Route) => {
    const request = route.request();
    const isMatch = request.method() === method && (request.postData() ?? '').includes(bodyFragment);
    if (!isHolding || !isMatch) return route.fallback();
    const response = await route.fetch();
    const release = async () => {
      // A page that has sent another request in the meantime has aborted this one.
      if (request.failure() !== null) return;
      await route.fulfill({ response });
      await eventually(() => assert.ok(request.timing().responseEnd >= 0 || request.failure()), 20_000);
      await waitForRender(page);
    };
    if (isHolding) waiting.push(release);
    else await release();
  };
  await page.route((url) => url.pathname === path, hold);
  return {
    nextResponse: () => eventually(() => waiting.shift() ?? assert.fail(`no request was sent to ${path}`), 20_000),
    async releaseAll() {
      isHolding = false;
      for (const release of waiting.splice(0)) await release();
    },
  };
}
