import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertFieldError, button, field, getJsonEditor, showView } from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { waitForRender } from '../../support/upstreams/held-responses.ts';

const curlCommand = `curl -X POST https://api.example.com/items -H 'Accept: application/json' -d '{"a": 1}'`;

describe('a wrong input on the pages of a server', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    await dashboard.toolhost.createServer(dashboard.config('wrong', { base_url: 'https://api.example.com' }));
  });

  type Wrong = {
    title: string;
    path: string;
    prepare?: (page: Page) => Promise<void>;
    find: (page: Page) => Locator;
    /** Field that shows the error, if it is another one. */
    findError?: (page: Page) => Locator;
    input: string;
    submit?: string;
    message: RegExp;
  };

  const addHeader = (page: Page) => button(page, 'Add shared header').click();
  const openAdvanced = (page: Page) => button(page, 'Advanced').click();
  const openPublishing = (page: Page) => button(page, 'Publishing').click();
  const wrongInputs: readonly Wrong[] = [
    {
      title: 'refuses a server name of 1,000 characters and names the maximum',
      path: 'settings',
      find: (page) => field(page, 'Name'),
      input: 'x'.repeat(1000),
      message: /at most 100 characters/,
    },
    {
      title: 'refuses a curl command as the name of a server and says what to do with it',
      path: 'settings',
      find: (page) => field(page, 'Name'),
      input: curlCommand,
      message: /curl command; enter a short name, or import the command/i,
    },
    {
      title: 'asks for a name when the name of a server is removed',
      path: 'settings',
      find: (page) => field(page, 'Name'),
      input: '',
      message: /Enter a name\./,
    },
    {
      title: 'refuses a base URL without a scheme and shows how a URL looks',
      path: 'settings',
      find: (page) => field(page, 'Base URL'),
      input: 'api.example.com/v1',
      message: /not a URL; allowed: https:\/\/host/i,
    },
    {
      title: 'refuses a curl command as the base URL and asks for its URL only',
      path: 'settings',
      find: (page) => field(page, 'Base URL'),
      input: curlCommand,
      message: /curl command; enter only its URL/i,
    },
    {
      title: 'refuses a header name with spaces and shows a valid one',
      path: 'settings',
      prepare: addHeader,
      find: (page) => field(page, 'Name of shared header 1'),
      findError: (page) => field(page, 'Value of shared header 1'),
      input: 'X Api Key',
      message: /without spaces or colons, such as X-Api-Key/,
    },
    {
      title: 'refuses a website without https',
      path: 'settings',
      prepare: openPublishing,
      find: (page) => field(page, 'Website'),
      input: 'http://example.com',
      message: /https:\/\/ URL/,
    },
    {
      title: 'refuses icons that are not JSON',
      path: 'settings',
      prepare: openPublishing,
      find: (page) => field(page, 'Icons'),
      input: 'https://example.com/icon.png',
      message: /invalid JSON/i,
    },
    {
      title: 'refuses a tool name with spaces and names the allowed characters',
      path: 'tools?tool=read',
      find: (page) => field(page, 'Tool name'),
      input: 'list projects',
      message: /found "list projects"; allowed: 1 to 64 letters, digits/i,
    },
    {
      title: 'refuses a curl command as the URL of a tool and asks for its URL only',
      path: 'tools?tool=read',
      find: (page) => field(page, 'URL'),
      input: curlCommand,
      message: /curl command; enter only its URL/i,
    },
    {
      title: 'refuses a URL with an argument in braces and shows the right spelling',
      path: 'tools?tool=read',
      find: (page) => field(page, 'URL'),
      input: 'https://api.example.com/items/{id}',
      message: /write `:id`/,
    },
    {
      title: 'refuses an argument name with spaces',
      path: 'tools?tool=read',
      find: (page) => field(page, 'Name of argument 1'),
      input: 'how many',
      message: /not an argument name; allowed: a letter or _/i,
    },
    {
      title: 'refuses a negative timeout instead of dropping its sign',
      path: 'tools?tool=read',
      prepare: openAdvanced,
      find: (page) => field(page, 'Timeout, ms'),
      input: '-5',
      message: /found -5; allowed: at least 1/i,
    },
    {
      title: 'refuses a negative limit instead of dropping its sign',
      path: 'settings/limits',
      find: (page) => field(page, 'Calls per second'),
      input: '-5',
      submit: 'Save limits',
      message: /found -5; allowed: at least 1/i,
    },
    {
      title: 'refuses a limit that is not a whole number',
      path: 'settings/limits',
      find: (page) => field(page, 'Calls per day'),
      input: '1.5',
      submit: 'Save limits',
      message: /found 1.5; allowed: a whole number/i,
    },
    {
      title: 'refuses a secret name with spaces and names the allowed characters',
      path: 'settings/secrets?name=',
      prepare: (page) => page.getByLabel(/^Secret value/).fill('abc'),
      find: (page) => field(page, 'Secret name'),
      input: 'my key',
      submit: 'Save secret',
      message: /a letter or _, then up to 63 letters/,
    },
    {
      title: 'refuses a secret value with a character that a header cannot hold',
      path: 'settings/secrets?name=',
      prepare: (page) => field(page, 'Secret name').fill('KEY'),
      find: (page) => page.getByLabel(/^Secret value/),
      input: 'abc→def',
      submit: 'Save secret',
      message: /one line of visible text/,
    },
  ];

  for (const { title, path, prepare, find, findError = find, input, submit, message } of wrongInputs)
    it(title, async (t) => {
      const page = await openPage(t, dashboard, `/servers/wrong/${path}`);
      await prepare?.(page);
      const target = find(page);
      await target.fill(input);
      if (submit === undefined) await target.blur();
      else await button(page, submit).click();
      await assertFieldError(findError(page), message);
      assert.equal(await target.inputValue(), input);
    });

  it('shows no error in a new tool before one of its fields is left', async (t) => {
    const page = await openPage(t, dashboard, '/servers/wrong/tools');
    const checked = page.waitForResponse((response) => response.url().endsWith('/api/v1/check'));
    await button(page, 'Add tool').click();
    await checked;
    await waitForRender(page);
    assert.equal(await page.locator('[aria-invalid=true]').count(), 0);
    await field(page, 'Tool name').focus();
    await field(page, 'Tool name').press('Tab');
    await assertFieldError(field(page, 'Tool name'), /Enter a tool name\./);
    assert.equal(await field(page, 'URL').getAttribute('aria-invalid'), null);
  });

  it('refuses the name of a variable that exists already', async (t) => {
    const page = await openPage(t, dashboard, '/servers/wrong/settings');
    for (const number of [1, 2]) {
      await button(page, 'Add variable').click();
      await field(page, `Name of variable ${number}`).fill('region');
    }
    await field(page, 'Name of variable 2').blur();
    await assertFieldError(field(page, 'Name of variable 2'), /duplicate/i);
  });

  it('says what to do with a curl command that is pasted as JSON', async (t) => {
    const page = await openPage(t, dashboard, '/servers/wrong/settings');
    await showView(page, 'JSON');
    await getJsonEditor(page).json.fill(curlCommand);
    await page
      .getByText(/this is a curl command, not a configuration; import it/)
      .first()
      .waitFor();
  });
});
