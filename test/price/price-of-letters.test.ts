import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

/** Returns distinct syllables, which the Punycode conversion of a host compares with one another. */
const syllables = (length: number, from = 0) =>
  Array.from({ length }, (_, i) => String.fromCodePoint(0xac00 + ((i * 37 + from) % 11_000))).join('');

const repeated = (piece: string) => (bytes: number) => piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)));

/** Characters that are slow to normalize: marks in the wrong order, and characters that expand to many. */
const letters: Record<string, (bytes: number) => string> = {
  'alternating marks': repeated('\u0301\u0323'),
  phrases: repeated('\ufdfa'),
  squares: repeated('\u3316'),
};

describe('CPU budget of Unicode normalization', () => {
  let priced: PricedToolhost;
  /** Sends the response that the test has set, with headers in UTF-8. */
  const upstream = createServer((_request, response) => {
    const { status = 200, headers = {}, body = '{}' } = answer;
    response.writeHead(status, headers).end(body);
  });
  let answer: { status?: number; headers?: Record<string, string>; body?: string } = {};
  let url: string;
  before(async () => {
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    const { port } = upstream.address() as AddressInfo;
    url = `http://127.0.0.1:${port}`;
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0', EGRESS_ALLOW: `127.0.0.1:${port}` });
    const object = {
      type: 'object',
      properties: { id: { type: 'string' }, filter: { type: 'object', style: 'repeat' } },
    };
    const oauth = { client_id: 'id', client_secret: 'secret', scopes: ['a'] };
    const provider = { authorization_url: `${url}/authorize`, token_url: `${url}/token`, ...oauth };
    for (const server of [
      {
        slug: 'letters',
        tools: [
          toolAt(`${url}/thing`),
          toolAt(`${url}/thing`, { name: 'followed', redirects: 'follow' }),
          ...['form', 'multipart'].map((body) =>
            toolAt(`${url}/thing`, { name: body, method: 'POST', body, input_schema: object }),
          ),
          toolAt(`${url}/thing`, { name: 'query', input_schema: object }),
        ],
      },
      { slug: 'with-login', tools: [toolAt(`${url}/thing`)], oauth: provider, authentication: { type: 'Bearer' } },
    ]) {
      const { status, text } = await priced.rest('POST', '/servers', { name: 'Letters', ...server });
      assert.equal(status, 201, text);
    }
  });
  after(async () => {
    upstream.close();
    await priced.stop();
  });

  for (const [what, lettersOf] of Object.entries(letters)) {
    it(`[find A2] normalizes upstream file names with ${what} within the CPU budget`, async () => {
      const name = lettersOf(4000);
      const part = `--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename="a${name}"\r\n\r\n\0\r\n`;
      answer = { headers: { 'content-type': 'multipart/mixed; boundary=b' }, body: `${part.repeat(50)}--b--` };
      const { status } = await priced.costsLittle(what, () => priced.call('letters', 'get', '{}'));
      assert.equal(status, 200);
      answer = {};
    });
  }

  it('[find A3] rejects a resource indicator with a long Unicode host within the CPU budget', async () => {
    const registered = await fetch(`${priced.url}/mcp/with-login/register`, {
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
      const send = () => fetch(`${priced.url}/mcp/with-login/token`, { method: 'POST', headers, body: text });
      const { status } = await priced.costsLittle(`${count} resources`, send);
      assert.equal(status, 400);
    }
  });

  it('[find A2] handles an upstream redirect to a long Unicode host within the CPU budget', async () => {
    const host = encodeURIComponent(syllables(4900));
    for (const location of [`https://${host}.example/`, `//${host}.example/`]) {
      answer = { status: 302, headers: { location } };
      for (const tool of ['get', 'followed']) {
        const { status } = await priced.costsLittle(`${tool} ${location.slice(0, 12)}`, () =>
          priced.call('letters', tool, '{}'),
        );
        assert.equal(status, 200);
      }
    }
    answer = {};
  });

  it('[find A2] checks long Unicode hosts in a configuration within the CPU budget and rejects impossible ones', async () => {
    const tools = (count: number, of: (n: number) => string) =>
      Array.from({ length: count }, (_, n) => toolAt(of(n), { name: `t${n}` }));
    const long = { name: 'Long', slug: 'long-hosts', base_url: `https://${syllables(2000)}.example` };
    for (const count of [1, 100]) {
      const config = { ...long, tools: tools(count, () => '/a') };
      const check = () => priced.rest('POST', '/check', config);
      const { body } = await priced.costsLittle(`a long host, ${count} tools`, check);
      assert.equal(body.valid, false);
      assert.match(JSON.stringify(body.problems), /has a host that is too long; allowed: 253 characters, and 63/);
    }
    const host = (n: number) => [0, 1, 2].map((part) => syllables(55, 4000 * part + n)).join('.');
    const different = { name: 'Hosts', slug: 'many-hosts', tools: tools(300, (n) => `https://${host(n)}.example/a`) };
    const check = () => priced.rest('POST', '/check', different);
    await priced.costsLittle('300 hosts', check);
  });
});
