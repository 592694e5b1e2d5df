import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { repeatToFit, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

/** Returns distinct syllables, which the Punycode conversion of a host compares with one another. */
const syllables = (length: number, from = 0) =>
  times(length, (i) => String.fromCodePoint(0xac00 + ((i * 37 + from) % 11_000))).join('');

/** Characters that are slow to normalize: marks in the wrong order, and characters that expand to many. */
const slowCharacters = { 'alternating marks': '\u0301\u0323', phrases: '\ufdfa', squares: '\u3316' };

describe('CPU budget of Unicode normalization', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  let nextResponse: CannedResponse = {};
  before(async () => {
    toolhost.upstream.on('*', () => ({ body: '{}', ...nextResponse }));
    const { url } = toolhost.upstream;
    const properties = { id: { type: 'string' }, filter: { type: 'object', style: 'repeat' } };
    const input_schema = { type: 'object', properties };
    const oauth = { client_id: 'id', client_secret: 'secret', scopes: ['a'] };
    const provider = { authorization_url: `${url}/authorize`, token_url: `${url}/token`, ...oauth };
    const tools = [
      buildToolAt(`${url}/thing`),
      buildToolAt(`${url}/thing`, { name: 'followed', redirects: 'follow' }),
      buildToolAt(`${url}/thing`, { name: 'query', input_schema }),
      ...['form', 'multipart'].map((body) =>
        buildToolAt(`${url}/thing`, { name: body, method: 'POST', body, input_schema }),
      ),
    ];
    await toolhost.createServer({ slug: 'letters', tools });
    const login = { oauth: provider, authentication: { type: 'Bearer' } };
    await toolhost.createServer({ slug: 'with-login', tools: tools.slice(0, 1), ...login });
  });

  for (const [label, piece] of Object.entries(slowCharacters)) {
    it(`[find A2] normalizes upstream file names with ${label} within the CPU budget`, async () => {
      const name = repeatToFit(piece, 4000);
      const part = `--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename="a${name}"\r\n\r\n\0\r\n`;
      nextResponse = { headers: { 'content-type': 'multipart/mixed; boundary=b' }, body: `${part.repeat(50)}--b--` };
      const { status } = await toolhost.measure(label).call('letters', 'get');
      assert.equal(status, 200);
      nextResponse = {};
    });
  }

  it('[find A3] rejects a resource indicator with a long Unicode host within the CPU budget', async () => {
    const registered = await fetch(`${toolhost.url}/mcp/with-login/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['https://agent.example/callback'] }),
    });
    const { client_id } = (await registered.json()) as { client_id: string };
    for (const count of [1, 4]) {
      const body = new URLSearchParams({ client_id, grant_type: 'refresh_token', refresh_token: 'made-up' });
      let text = body.toString();
      for (let n = 0; n < count; n++) text += `&resource=https://${syllables(4900, n)}.example/`;
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const send = () => fetch(`${toolhost.url}/mcp/with-login/token`, { method: 'POST', headers, body: text });
      const { status } = await toolhost.assertWithinBudget(`${count} resources`, send);
      assert.equal(status, 400);
    }
  });

  it('[find A2] handles an upstream redirect to a long Unicode host within the CPU budget', async () => {
    const host = encodeURIComponent(syllables(4900));
    for (const location of [`https://${host}.example/`, `//${host}.example/`]) {
      nextResponse = { status: 302, headers: { location } };
      for (const tool of ['get', 'followed']) {
        const { status } = await toolhost.measure(`${tool} ${location.slice(0, 12)}`).call('letters', tool);
        assert.equal(status, 200);
      }
    }
    nextResponse = {};
  });

  it('[find A2] checks long Unicode hosts in a configuration within the CPU budget and rejects impossible ones', async () => {
    const tools = (count: number, makeUrl: (n: number) => string) =>
      times(count, (n) => buildToolAt(makeUrl(n), { name: `t${n}` }));
    const longHostConfig = { name: 'Long', slug: 'long-hosts', base_url: `https://${syllables(2000)}.example` };
    for (const count of [1, 100]) {
      const config = { ...longHostConfig, tools: tools(count, () => '/a') };
      const { body } = await toolhost.measure(`a long host, ${count} tools`).rest('POST', '/check', config);
      assert.equal(body.valid, false);
      assert.match(JSON.stringify(body.problems), /has a host that is too long; allowed: 253 characters, and 63/);
    }
    const host = (n: number) => [0, 1, 2].map((part) => syllables(55, 4000 * part + n)).join('.');
    const different = { name: 'Hosts', slug: 'many-hosts', tools: tools(300, (n) => `https://${host(n)}.example/a`) };
    await toolhost.measure('300 hosts').rest('POST', '/check', different);
  });
});
