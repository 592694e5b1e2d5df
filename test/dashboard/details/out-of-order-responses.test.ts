import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Page } from 'playwright-core';
import { assertFieldError, button, type Dashboard, field, startDashboard } from '../../support/browser/dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { holdResponses } from '../../support/upstreams/held-responses.ts';

/**
 * Watches the editor at every change of the page: messages about the slug must quote the slug on screen, and the list of
 * problems must have one line per field.
 */
const watchSlugScript = `window.slugFaults = [];
new MutationObserver(() => {
  const input = document.getElementById('field-slug');
  if (!input) return;
  const lines = [...document.querySelectorAll('[role=alert] li')].map((line) => line.textContent);
  const described = (input.getAttribute('aria-describedby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '');
  const said = [...lines.filter((line) => line.startsWith('slug')), ...described];
  for (const text of said) {
    const found = /found "([^"]*)"|^(?:slug: )?"([^"]*)" is taken/i.exec(text);
    const quoted = found && (found[1] ?? found[2]);
    if (found && quoted !== input.value) window.slugFaults.push('about ' + input.value + ': ' + text);
  }
  const own = lines.filter((line) => line.startsWith('slug'));
  if (own.length > 1) window.slugFaults.push(own.join(' | '));
}).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });`;

const readSlugErrors = (page: Page) => page.evaluate('window.slugFaults');

describe('the validation of a new server', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[find D1] never shows an error for another input, in any order of edits and responses', async () => {
    const text = fc.constantFrom('Not a slug', 'Nor this', 'neither-', 'x', '', 'good-slug', 'another-good-slug');
    const step = fc.record({ text, isSaved: fc.boolean(), answers: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 7 }), async (steps) => {
        await dashboard.withPage('/servers/new?from=form', async (page) => {
          await page.evaluate(watchSlugScript);
          const heldResponses = [
            await holdResponses(page, 'POST', '/api/v1/check'),
            await holdResponses(page, 'POST', '/api/v1/servers'),
          ];
          for (const { text: slug, isSaved, answers: count } of steps) {
            // The form is disabled while a new server is being created.
            if (!(await isSaving(page))) {
              await field(page, 'Slug').fill(slug);
              if (isSaved) await button(page, 'Create server').click();
            }
            for (let turn = 0; turn < count; turn++) await heldResponses[turn % 2]?.releaseNewest();
          }
          for (const held of heldResponses) await held.releaseAll();
          await eventually(async () => assert.equal(await isSaving(page), false));
          await field(page, 'Slug').fill('Last one');
          await button(page, 'Create server').click();
          await assertFieldError(field(page, 'Slug'), /found "Last one"/i);
          assert.deepEqual(await readSlugErrors(page), []);
        });
      }),
      { numRuns: 4, endOnFailure: true },
    );
  });
});

async function isSaving(page: Page): Promise<boolean> {
  return (await button(page, 'Create server').getAttribute('data-loading')) === 'true';
}
