import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium } from './support/chromium.ts';
import { button, contextOf, field, type Person, saysAtField } from './support/dashboard.ts';
import { eventually } from './support/eventually.ts';
import { type RecordingUpstream, startRecordingUpstream } from './support/recording-upstream.ts';
import { startToolhost, type TestToolhost } from './support/toolhost.ts';

describe('the forms of the dashboard', { concurrency: 3 }, () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let browser: Browser;

  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await Promise.all([toolhost?.stop(), upstream?.close()]);
  });

  function config(slug: string) {
    return {
      name: `The ${slug}`,
      slug,
      description: 'Reads.',
      tools: [
        {
          name: 'read',
          description: 'Reads an item.',
          method: 'GET',
          url: `${upstream.url}/items`,
          input_schema: { count: { type: 'integer', description: 'How many' } },
        },
      ],
    };
  }

  /** A profile of a person, and in it a page at this address. */
  async function at(
    path: string,
    use: (page: Page, context: BrowserContext) => Promise<void>,
    person: Person = { name: 'Anna' },
  ): Promise<void> {
    const context = await contextOf(browser, toolhost, person);
    try {
      const page = await context.newPage();
      await page.goto(path);
      await use(page, context);
    } finally {
      await context.close();
    }
  }

  const editorAt = (slug: string, use: Parameters<typeof at>[1]) =>
    at(`/servers/${slug}`, async (page, context) => {
      await field(page, 'Description').fill('My long text');
      await use(page, context);
      assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    });

  const alert = (page: Page, text: string) => page.getByRole('alert').filter({ hasText: text }).first();

  const versionOf = async (slug: string) => {
    const { body } = await toolhost.rest('GET', `/servers/${slug}`);
    return body.server as { version: number; description: string };
  };

  it('says at the fields of a new server what is wrong, and keeps what was typed', async () => {
    await at('/servers/new?from=form', async (page) => {
      await field(page, 'Name').fill('Bad one');
      await field(page, 'Slug').fill('Not a slug!');
      await field(page, 'Tool name').fill('has spaces in it');
      await field(page, 'URL').fill('nowhere');
      await button(page, 'Create server').click();
      await saysAtField(field(page, 'Slug'), /slug|allowed|must/i);
      await saysAtField(field(page, 'Tool name'), /name|allowed|must/i);
      await saysAtField(field(page, 'URL'), /URL|http/i);
      await saysAtField(field(page, 'Tool description'), /./);
      assert.equal(await field(page, 'Slug').inputValue(), 'Not a slug!');
      assert.equal(await field(page, 'URL').inputValue(), 'nowhere');
      await page.getByRole('alert').getByRole('button', { name: 'slug', exact: true }).click();
      await eventually(async () => assert.equal(await page.locator(':focus').inputValue(), 'Not a slug!'));
    });
  });

  it('says where JSON cannot be read, and keeps it', async () => {
    await at('/servers/new?from=json', async (page) => {
      const json = page.getByRole('textbox', { name: 'Configuration as JSON' });
      await json.fill('{ "name": "Half');
      await saysAtField(json, /./);
      await button(page, 'Create server').click();
      assert.equal(await json.inputValue(), '{ "name": "Half');
      assert.equal(new URL(page.url()).pathname, '/servers/new');
    });
  });

  it('says that a slug is taken, at the slug', async () => {
    await toolhost.createServer(config('taken'));
    await at('/servers/new?from=json', async (page) => {
      const json = page.getByRole('textbox', { name: 'Configuration as JSON' });
      await json.fill(JSON.stringify(config('taken'), null, 2));
      await button(page, 'Create server').click();
      await saysAtField(field(page, 'Slug'), /taken/i);
      assert.match(await json.inputValue(), /"slug": "taken"/);
    });
  });

  it('says at the fields of a key, a secret, an invitation and the workspace what is wrong', async () => {
    await toolhost.createServer(config('with-forms'));
    await at('/keys', async (page) => {
      await button(page, 'New API key').first().click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('checkbox', { name: 'call', exact: true }).uncheck();
      await button(dialog, 'Create key').click();
      await saysAtField(field(dialog, 'Name'), /what the key is for/);
      await dialog.getByText('Choose at least one.').waitFor();
      await dialog.getByRole('checkbox', { name: 'call', exact: true }).check();
      await field(dialog, 'Name').fill('x'.repeat(300));
      await button(dialog, 'Create key').click();
      await saysAtField(field(dialog, 'Name'), /100|characters|long/);
      assert.equal((await field(dialog, 'Name').inputValue()).length, 300);
      await page.goto('/servers/with-forms/secrets');
      await field(page, 'Secret name').fill('not a name');
      await page.getByLabel(/^Secret value/).fill('of the secret');
      await button(page, 'Store secret').click();
      await saysAtField(field(page, 'Secret name'), /./);
      assert.equal(await page.getByLabel(/^Secret value/).inputValue(), 'of the secret');
      await page.goto('/settings');
      await field(page, 'Invite by e-mail address').fill('nobody');
      await button(page, 'Invite').click();
      await saysAtField(field(page, 'Invite by e-mail address'), /address|mail/i);
      assert.equal(await field(page, 'Invite by e-mail address').inputValue(), 'nobody');
      await field(page, 'Workspace name').fill('y'.repeat(400));
      await button(page, 'Rename').click();
      await saysAtField(field(page, 'Workspace name'), /./);
      assert.equal((await field(page, 'Workspace name').inputValue()).length, 400);
    });
  });

  it('says that the session has ended, and goes on after a new sign-in', async () => {
    await toolhost.createServer(config('ended'));
    await editorAt('ended', async (page, context) => {
      await context.clearCookies();
      await button(page, 'Save').click();
      await alert(page, 'Your session has ended').waitFor();
      assert.equal(await field(page, 'Description').inputValue(), 'My long text');
      const opened = context.waitForEvent('page');
      await page.getByRole('link', { name: 'Sign in in a new tab' }).click();
      const other = await opened;
      await button(other, 'Continue').click();
      await other.waitForURL(`${toolhost.url}/servers`);
      await page.bringToFront();
      await button(page, 'I have signed in').click();
      await alert(page, 'Your session has ended').waitFor({ state: 'hidden' });
      await button(page, 'Save').click();
      await page.getByText('Everything is saved').waitFor();
      assert.equal((await versionOf('ended')).description, 'My long text');
    });
  });

  it('says that the connection is lost, and saves when it is back', async () => {
    await toolhost.createServer(config('offline'));
    await editorAt('offline', async (page, context) => {
      await context.setOffline(true);
      await button(page, 'Save').click();
      await alert(page, 'The service cannot be reached').waitFor();
      assert.equal(await field(page, 'Description').inputValue(), 'My long text');
      await context.setOffline(false);
      await button(page, 'Save').click();
      await page.getByText('Everything is saved').waitFor();
      assert.equal((await versionOf('offline')).description, 'My long text');
    });
  });

  it('does not let a viewer change anything, by page or by API', async () => {
    await toolhost.createServer(config('viewed'));
    const viewer: Person = { name: 'Vera', role: 'viewer' };
    await at(
      '/servers',
      async (page) => {
        await page.getByRole('link', { name: 'The viewed' }).waitFor();
        assert.equal(await page.getByRole('link', { name: 'New server' }).count(), 0);
        await page.goto('/servers/viewed');
        await field(page, 'Name').waitFor();
        assert.equal(await field(page, 'Name').isEditable(), false);
        assert.equal(await button(page, 'Save').count(), 0);
        await page.goto('/servers/viewed/try');
        await button(page, 'Call the tool').waitFor();
        assert.equal(await button(page, 'Call the tool').isDisabled(), true);
        for (const [path, names] of [
          ['/keys', ['New API key', /^Revoke/]],
          ['/servers/viewed/connect', []],
          ['/servers/viewed/secrets', ['Store secret']],
          ['/servers/viewed/versions', [/^Restore/]],
          ['/servers/viewed/options', ['Delete server…', 'Save limits']],
          ['/settings', ['Invite', 'Rename', /^Remove/]],
        ] as const) {
          await page.goto(path);
          await page.getByRole('heading', { level: 1 }).waitFor();
          for (const name of names) assert.equal(await button(page, name).count(), 0, `${path} has ${name}`);
        }
        await refusesChanges(page, 403);
      },
      viewer,
    );
  });

  /** Asks for every kind of change as the page's own script could. */
  async function refusesChanges(page: Page, status: number): Promise<void> {
    const changes: [string, string, unknown?][] = [
      ['PUT', '/servers/viewed', config('viewed')],
      ['DELETE', '/servers/viewed'],
      ['POST', '/servers/viewed/versions/1/restore'],
      ['PUT', '/servers/viewed/secrets/A', { value: 'b' }],
      ['DELETE', '/servers/viewed/secrets/A'],
      ['POST', '/servers/viewed/capture', { hours: 1 }],
      ['PATCH', '/servers/viewed/limits', { concurrent_calls: 1 }],
      ['POST', '/servers/viewed/tools/read/call', { arguments: { count: 1 } }],
    ];
    const ofAll: typeof changes = [
      ['POST', '/servers', config('by-viewer')],
      ['POST', '/keys', { name: 'k', scopes: ['call'] }],
      ['POST', '/invitations', { email: 'a@mail.example', role: 'owner' }],
      ['PATCH', '/workspace', { name: 'Mine' }],
    ];
    for (const [method, path, body] of status === 403 ? [...changes, ...ofAll] : changes) {
      const init = { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) };
      const script = `fetch('/api/v1${path}', ${JSON.stringify(init)}).then((answer) => answer.status)`;
      assert.equal(await page.evaluate(script), status, `${method} ${path}`);
    }
  }

  it("shows another workspace's ids like unknown ones", async () => {
    await toolhost.createServer(config('foreign'));
    const [call] = (await toolhost.rest('GET', '/keys')).body.keys as { id: string }[];
    await at(
      '/servers/foreign',
      async (page) => {
        const nothing = page.getByRole('heading', { name: 'There is nothing here' });
        await nothing.waitFor();
        const said = await page.getByRole('main').innerText();
        await page.goto('/servers/unknown');
        await nothing.waitFor();
        assert.equal(await page.getByRole('main').innerText(), said);
        const answer = async (method: string, path: string) => {
          const script = `fetch('/api/v1${path}', { method: '${method}' }).then(async (a) => [a.status, await a.json()])`;
          const [status, body] = (await page.evaluate(script)) as [number, { detail: string }];
          return `${status} ${body.detail}`;
        };
        assert.match(await answer('GET', '/servers/foreign'), /^404/);
        assert.equal(
          (await answer('GET', '/servers/foreign')).replaceAll('foreign', 'SLUG'),
          (await answer('GET', '/servers/unknown')).replaceAll('unknown', 'SLUG'),
        );
        const known = call?.id ?? assert.fail();
        const unknown = `${known.slice(0, -4)}zzzz`;
        assert.equal(
          (await answer('DELETE', `/keys/${known}`)).replaceAll(known, 'ID'),
          (await answer('DELETE', `/keys/${unknown}`)).replaceAll(unknown, 'ID'),
        );
      },
      { name: 'Mallory', workspace: 'wsp_other' },
    );
  });
});
