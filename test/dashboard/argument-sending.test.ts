import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { button, choose, type Dashboard, field, startDashboard } from '../support/browser/dashboard.ts';
import { toasted } from '../support/browser/toasts.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('how an argument is sent, in the editor', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[conf 1] [conf 2] is chosen behind a button, and a constant is not asked for when the tool is tried', async () => {
    const { toolhost } = dashboard;
    const input_schema = { file: { type: 'string' }, tags: { type: 'array' }, version: { type: 'string' } };
    const tool = {
      name: 'run',
      description: 'Runs the upload of this test.',
      method: 'POST',
      url: 'https://api.example.com/files',
    };
    await toolhost.createServer({ name: 'Sent', slug: 'sent', tools: [{ ...tool, input_schema, body: 'multipart' }] });
    await dashboard.at('/servers/sent', async (page) => {
      const open = async (name: string, nth: number) => {
        await button(page, `More about ${name}`).click();
        await button(page, 'How it is sent').nth(nth).click();
      };
      await open('file', 0);
      await field(page, 'Name of file for the API').fill('upload[file]');
      await page.getByRole('checkbox', { name: 'file is Base64' }).check();
      await field(page, 'File name of file').fill('scan.png');
      await field(page, 'Media type of file').fill('image/png');
      await open('tags', 1);
      await choose(page, 'Style of tags', 'a[0]=1, a[b][0]=1');
      await open('version', 2);
      await field(page, 'Constant of version').fill('2026-01');
      await button(page, 'Save').click();
      await toasted(page, 'Saved as version 2');
    });
    const { body } = await toolhost.rest('GET', '/servers/sent');
    const [stored] = (body.config as Json).tools as Json[];
    assert.deepEqual(stored?.input_schema, {
      file: {
        type: 'string',
        wire_name: 'upload[file]',
        content: 'base64',
        file_name: 'scan.png',
        media_type: 'image/png',
      },
      tags: { type: 'array', style: 'indices' },
      version: { type: 'string', value: '2026-01' },
    });
    await dashboard.at('/servers/sent/try', async (page) => {
      await page.getByLabel(/^tags/).first().waitFor();
      assert.equal(await page.getByLabel(/^version/).count(), 0);
    });
  });

  it('[conf 1] a text of a file may name an argument, and a problem is shown at it', async () => {
    const { toolhost } = dashboard;
    const input_schema = { file: { type: 'string', content: 'base64' }, name: { type: 'string' } };
    const tool = {
      name: 'run',
      description: 'Runs the upload of this test.',
      method: 'POST',
      url: 'https://api.example.com/files',
    };
    await toolhost.createServer({
      name: 'Named',
      slug: 'named',
      tools: [{ ...tool, input_schema, body: 'multipart' }],
    });
    await dashboard.at('/servers/named', async (page) => {
      await button(page, 'More about file').click();
      await button(page, 'How it is sent').click();
      await field(page, 'File name of file').fill(':nam');
      await button(page, 'Save').click();
      await page
        .getByText(/did you mean `?name/)
        .first()
        .waitFor();
      await field(page, 'File name of file').fill(':name');
      await button(page, 'Save').click();
      await toasted(page, 'Saved as version 2');
    });
    const { body } = await toolhost.rest('GET', '/servers/named');
    const [stored] = (body.config as Json).tools as Json[];
    assert.deepEqual((stored?.input_schema as Json | undefined)?.file, {
      type: 'string',
      content: 'base64',
      file_name: { argument: 'name' },
    });
  });
});
