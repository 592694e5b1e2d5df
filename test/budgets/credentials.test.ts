import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { makeObject, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

/** Repeats a piece up to an exact number of characters. */
const repeatTo = (piece: string, characters: number) =>
  piece.repeat(Math.ceil(characters / piece.length)).slice(0, characters);

/** Escaped start of an escape, nested a hundred times. */
const nested = `&${'#x26;'.repeat(99)}`;
/** Pieces at which a search for credentials could restart at every character or decode repeatedly. */
const pieces = ['\\', '%25', '&#x0', '=', 'a2', 'YWFh', 'MFRG', 'tha_', nested];

/** Returns a text in which every layer decodes to the next. */
function nestEncoding(encode: (text: string) => string): string {
  let text = 'not-a-key';
  for (let next = encode(text); next.length < 7700; next = encode(text)) text = next;
  return text.repeat(Math.floor(7700 / text.length)).padEnd(7700, text);
}

/** Bearer tokens of 7,700 characters that could be decoded layer by layer. */
const layered = {
  hex: nestEncoding((text) => Buffer.from(text).toString('hex')),
  Base64: nestEncoding((text) => Buffer.from(text).toString('base64url')),
  percent: nestEncoding((text) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')),
  'percent signs': `%${'25'.repeat(3849)}`,
  Base32: 'MFRG'.repeat(1925),
  'the format of issued tokens': `_${'a'.repeat(43)}`.repeat(175),
};

describe('CPU budget of credentials', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  before(async () => {
    const { url } = toolhost.upstream;
    const authentication = {
      type: 'ClientCredentials',
      token_url: `${url}/token`,
      client_id: 'id',
      client_secret: '{{A}}',
    };
    const tools = [buildToolAt(`${url}/thing`)];
    await toolhost.createServer({ slug: 'forwarding', tools, authentication: { type: 'Bearer' } });
    await toolhost.createServer({ slug: 'with-client', tools, authentication });
  });

  /** Sends a request of an unverified caller with any bearer token, within the CPU budget. */
  const send = (label: string, bearer: string, message: string, maxUnits?: number) => {
    const headers = {
      authorization: `Bearer ${bearer}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const body = `{"jsonrpc":"2.0","id":1,${message}}`;
    const request = () => sendRawRequest(`${toolhost.url}/mcp/forwarding`, { method: 'POST', headers }, body);
    return toolhost.assertWithinBudget(label, request, maxUnits);
  };
  const list = '"method":"tools/list"';
  const call = '"method":"tools/call","params":{"name":"get","arguments":{}}';
  const storeSecret = (value: string) => toolhost.rest('PUT', '/servers/with-client/secrets/A', { value });

  it("[find A3] checks an unverified caller's bearer token within the CPU budget, whatever it contains", async () => {
    for (const piece of pieces) {
      const { status, text } = await send(`a bearer token of ${piece}`, repeatTo(piece, 15_000), list);
      assert.ok([200, 401].includes(status), `${piece}: ${text}`);
    }
  });

  it('[sec A1] checks a long bearer token in linear time, whatever it decodes to', async () => {
    for (const [shape, bearer] of Object.entries(layered)) {
      const label = `a bearer token of nested ${shape}`;
      assert.equal((await send(label, bearer, list, 0.1)).status, 200, label);
    }
  });

  it('[find A1] stores any secret and checks any configuration text within the CPU budget', async () => {
    for (const piece of pieces) {
      const value = repeatTo(piece, 8000);
      const stored = await toolhost.assertWithinBudget(`a secret of ${piece}`, () => storeSecret(value));
      assert.ok([200, 400].includes(stored.status), `${piece}: ${stored.text}`);
      const texts = [1, 2, 3, 4].map((n) => `${n}${repeatTo(piece, 14_000)}`);
      const tool = buildToolAt(`${toolhost.upstream.url}/thing`, { method: 'POST', body_template: [piece, ...texts] });
      const config = { name: 'Any', slug: 'any', tools: [tool] };
      const checked = await toolhost.measure(`a body of ${piece}`).rest('POST', '/check', config);
      assert.equal(checked.status, 200, checked.text);
    }
  });

  it('[find A3] searches an error response for the credential within the CPU budget', async () => {
    toolhost.upstream.on('GET /thing', () => ({ status: 400, body: 'An ordinary page. '.repeat(220) }));
    const pairs = [`${'Ojo6'.repeat(3740)}/w==`, Buffer.from(`${':'.repeat(11_000)}\n`).toString('base64')];
    for (const bearer of [...pairs, ...pieces.map((piece) => repeatTo(piece, 15_000))]) {
      const label = `an error for ${bearer.slice(0, 10)}`;
      const { status, text } = await send(label, bearer, call);
      assert.ok(status === 401 || text.includes('HTTP 400'), `${label}: ${text}`);
    }
  });

  it('[find A2] redacts credentials in any error response within the CPU budget', async () => {
    for (const piece of ['\\u{', '&#', '%25', nested]) {
      for (const bytes of [95_000, 250_000]) {
        const headers = { 'content-type': 'text/plain' };
        toolhost.upstream.on('GET /thing', () => ({ status: 400, headers, body: repeatTo(piece, bytes) }));
        const label = `${bytes} bytes of ${piece}`;
        assert.match((await send(label, 'a-token-of-a-caller', call)).text, /HTTP 400/, label);
      }
    }
  });

  /** Nested escapes, and texts that could be one encoding inside another. */
  const nestedEscapes = ['%25255c', '&#x5c;', 'JTI1', '=3DJTI1PTNE=253D41 42 43 44 45 46 47 48 49='];
  const shownHeaders = times(20, (n) => `x-shown-${n}`);

  it('[find A2] redacts and captures all texts of one response within the CPU budget', async () => {
    const slug = 'with-many';
    const secrets = times(190, (n) => `S${n}`);
    const headers = makeObject(10, (n) => [`x-sent-${n}`, times(19, (i) => `{{S${19 * n + i}}}`).join(' ')]);
    const tool = buildToolAt(`${toolhost.upstream.url}/heads`, { headers, response_headers: shownHeaders });
    await toolhost.createServer({ slug, tools: [tool] });
    for (const name of secrets) {
      const value = `${name}zq~%é${name.repeat(6)}`;
      assert.equal((await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { value })).status, 200);
    }
    for (const hours of [0, 1]) {
      if (hours > 0) assert.equal((await toolhost.rest('POST', `/servers/${slug}/capture`, { hours })).status, 200);
      for (const piece of nestedEscapes) {
        for (const status of [200, 400]) {
          const value = repeatTo(piece, 2800);
          const longHeaders = [...shownHeaders, 'location', 'content-disposition'].map((name) => [name, value]);
          const responseHeaders = { 'content-type': 'text/x', ...Object.fromEntries(longHeaders) };
          toolhost.upstream.on('GET /heads', () => ({ status, headers: responseHeaders, body: '{}' }));
          const label = `${status} with headers of ${piece}, captured for ${hours} h`;
          const { text } = await toolhost.measure(label).call(slug, 'get');
          assert.match(text, /x-shown-0/, label);
        }
      }
    }
  });

  describe('from a token endpoint', () => {
    /** Number of stored secrets. Each new secret makes the service request a new token. */
    let secrets = 0;
    const callWithTokenResponse = async (label: string, body: Json) => {
      toolhost.upstream.on('POST /token', () => ({ body }));
      const { text } = await toolhost.assertWithinBudget(label, async () => {
        await storeSecret(`${'a'.repeat(4000)}${++secrets}${'a'.repeat(4000)}`);
        return toolhost.call('with-client', 'get');
      });
      return text;
    };

    it('[find A2] handles any token within the CPU budget and rejects one that fits in no header', async () => {
      for (const piece of ['\\', 'a2', 'Ojo6']) {
        for (const length of [15_600, 120_000, 250_000]) {
          const label = `a token of ${length} of ${piece}`;
          const access_token = repeatTo(piece, length);
          const text = await callWithTokenResponse(label, { access_token, expires_in: 600 });
          const expected = /no token for the API: .+ (responded without a usable access_token|could not be called)/;
          if (length >= 16_384) assert.match(text, expected, label);
        }
      }
    });

    it('[sec D14] handles any error code of a token endpoint within the CPU budget', async () => {
      for (const error of [repeatTo('a', 262_000), repeatTo('a', 3000), repeatTo('ab', 250_000)]) {
        const text = await callWithTokenResponse(`${error.length} characters`, { error });
        assert.match(text, /returned no token \(status 200\)/);
      }
    });
  });
});
