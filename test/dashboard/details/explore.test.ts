import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, field } from '../../support/browser/dashboard.ts';
import { openPage, pressOn, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const secret = 'secret-of-the-api-0123456789';

describe('a call in the dashboard', () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    const schema = {
      name: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' }, optional: true },
      note: { type: 'string', optional: true },
      size: { type: 'object', optional: true },
    };
    const base = { description: 'Writes an item.', url: `${upstream.url}/things`, input_schema: schema };
    const tools = [
      { ...base, name: 'first', method: 'GET' },
      { ...base, name: 'read', method: 'GET', response_fields: ['name'] },
      { ...base, name: 'write', method: 'POST', headers: { 'X-Service': 'Key {{KEY}}' } },
      { ...base, name: 'gone', method: 'POST' },
    ];
    await toolhost.createServer(config('seen', { authentication: { type: 'Bearer', token: '{{KEY}}' }, tools }));
    await toolhost.rest('PUT', '/servers/seen/secrets/KEY', { body: { value: secret } });
    upstream.on('GET /things', () => ({
      headers: { 'x-total-count': '1', 'x-noise': 'n' },
      body: { name: 'One', links: { self: 'https://api.example.com/things/1' }, more: 'm'.repeat(400) },
    }));
    upstream.on('POST /things', () => ({ status: 201, body: { made: true, key: secret } }));
    await toolhost.rest('POST', '/servers/seen/capture', { body: { hours: 1 } });
  });

  const recordCall = async (tool: string, args: Json): Promise<string> => {
    const { toolhost } = dashboard;
    await toolhost.callTool('seen', await toolhost.createKey(), tool, args);
    const { calls } = (await toolhost.rest('GET', `/calls?slug=seen&tool=${tool}&limit=1`)).body as { calls: Json[] };
    return String(calls[0]?.id);
  };
  const result = (page: Page) => page.getByRole('region', { name: 'Result' });

  it('[agent 5] shows the API response next to the result for the agent, with the tokens of both', async (t) => {
    const page = await openPage(t, dashboard, '/servers/seen/try?tool=read');
    await field(page, 'name').fill('n');
    await button(page, 'Call tool').click();
    const apiResponse = result(page).getByRole('region', { name: 'API response' });
    await apiResponse.getByText('200', { exact: true }).waitFor();
    await apiResponse.getByText(/^\d+ B, about \d+ tokens$/).waitFor();
    await apiResponse.getByText('x-total-count: 1').waitFor();
    assert.doesNotMatch((await apiResponse.textContent()) ?? '', /x-noise/);
    await button(apiResponse, /more headers$/).click();
    await apiResponse.getByText('x-noise: n').waitFor();
    await apiResponse.getByRole('region', { name: 'response body' }).getByText('"links"').waitFor();
    const agentResult = result(page).getByRole('region', { name: 'Sent to agent' });
    await agentResult.getByText(/^about \d+ tokens, 9\d% less$/).waitFor();
    assert.doesNotMatch((await agentResult.textContent()) ?? '', /links/);
    await checkPage(page);
  });

  it('[agent 5] opens in Try it from its record, sends nothing automatically, and confirms a write', async (t) => {
    const args = { name: 'it\'s "x"', tags: [], note: '', size: { a: [1, 'b'] } };
    await recordCall('write', args);
    const { upstream } = dashboard;
    const page = await openPage(t, dashboard, '/calls?server=seen&tool=write');
    await button(page, /^write/)
      .first()
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('region', { name: 'Sent to agent' }).getByText('"made"').waitFor();
    await checkPage(page);
    upstream.take();
    const link = dialog.getByRole('link', { name: 'Replay in Try it' });
    await pressOn(link);
    await page.getByText('Arguments of a recorded call').waitFor();
    assert.equal(await field(page, 'name').inputValue(), args.name);
    assert.equal(await field(page, 'size').inputValue(), JSON.stringify(args.size));
    await page.getByRole('region', { name: 'Outgoing request' }).getByText('POST /things HTTP/1.1').waitFor();
    await pressOn(button(page, 'Call tool'));
    const question = page.getByRole('dialog', { name: 'Send this call again?' });
    await question.waitFor();
    await checkPage(page);
    await button(question, 'Cancel').click();
    await question.waitFor({ state: 'hidden' });
    assert.deepEqual(upstream.take(), [], 'a request was sent without confirmation');
    await button(page, 'Call tool').click();
    await pressOn(button(question, 'Send again'));
    await result(page).getByText('OK', { exact: true }).waitFor();
    const sent = upstream.take().map(({ body }) => JSON.parse(body.toString('utf8')) as Json);
    assert.deepEqual(sent, [args], 'the replayed arguments differ from the recorded ones');
    const apiResponse = result(page).getByRole('region', { name: 'API response' });
    assert.match((await apiResponse.textContent()) ?? '', /"key": "\[redacted\]"/);
    await page.setViewportSize({ width: 400, height: 900 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await checkPage(page);
  });

  it('[agent 5] says why it cannot be replayed and which arguments were redacted', async (t) => {
    const gone = await recordCall('gone', { name: 'n' });
    const redacted = await recordCall('write', { name: `Key ${secret}` });
    await dashboard.toolhost.rest('PATCH', '/servers/seen/tools/gone', { body: { disabled: true } });

    for (const [id, text, name] of [
      [gone, /Its tool gone is disabled or no longer exists/, ''],
      ['call_unknown', /The call no longer exists/, ''],
      [redacted, /Enter them again where it says \[redacted\]/, 'Key [redacted]'],
    ] as const) {
      const page = await openPage(t, dashboard, `/servers/seen/try?replay=${id}`);
      await page.getByText(text).waitFor();
      assert.equal(await field(page, 'name').inputValue(), name);
    }
  });

  it('[agent 5] can be copied as an MCP request and as code, without a credential', async (t) => {
    const page = await openPage(t, dashboard, '/servers/seen/try?tool=read');
    const context = page.context();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await field(page, 'name').fill("it's");
    await button(page, 'Copy as MCP request or code').click();
    const assertCallFormat = async (form: string, text: RegExp) => {
      await page.getByRole('radiogroup', { name: 'Call format' }).getByText(form, { exact: true }).click();
      const code = page.getByRole('region', { name: `call as ${form}` });
      await eventually(async () => assert.match((await code.textContent()) ?? '', text));
    };
    await assertCallFormat('curl', /-H "Authorization: Bearer \$TOOLHOST_API_KEY"[\s\S]*"name":"it'\\''s"/);
    await assertCallFormat('TypeScript', /process\.env\.TOOLHOST_API_KEY[\s\S]*\{"name": "it's"\}/);
    await assertCallFormat('Python', /os\.environ\["TOOLHOST_API_KEY"\][\s\S]*\{"name": "it's"\}/);
    await assertCallFormat('MCP', /"method": "tools\/call"/);
    await button(page, 'Copy call as MCP').click();
    const copied = JSON.parse(String(await page.evaluate('navigator.clipboard.readText()'))) as Json;
    assert.deepEqual(copied.params, { name: 'read', arguments: { name: "it's" } });
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
  });
});
