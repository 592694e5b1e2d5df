import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { makeObject, times } from '../support/long-values.ts';
import {
  type ForgedTokenProvider,
  type Forgery,
  startForgedTokenProvider,
} from '../support/oauth/forged-token-provider.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const repeatText = (count: number, text: (i: number) => string) => times(count, (i) => text(i)).join('');
/** Form bodies of the given size in bytes that are slow to parse. */
const slowForms = (bytes: number): Record<string, string> => ({
  'many fields of one name': 'a&'.repeat(bytes / 2),
  'many names': repeatText(bytes / 8, (i) => `n${i}=&`.padEnd(8, 'x')).slice(0, bytes),
  'percent signs': `a=${'%C3'.repeat(bytes / 3)}`.slice(0, bytes),
  separators: '&'.repeat(bytes),
});

describe('CPU budget of logins', () => {
  let provider: ForgedTokenProvider;
  let toolhost: CpuBudgetToolhost;
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-price-'));
  before(async () => {
    provider = await startForgedTokenProvider();
    toolhost = await startCpuBudgetToolhost({
      DATA_DIR: dataDir,
      OIDC_ISSUER: provider.url,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: 'of-the-client',
      REFUSALS_PER_MINUTE: '0',
    });
    const client = { token_url: `${toolhost.upstream.url}/token`, client_id: 'id', client_secret: '{{CLIENT_SECRET}}' };
    const oauth = {
      ...client,
      authorization_url: 'https://id.example.com/authorize',
      client_secret: 's',
      scopes: ['a'],
    };
    const tools = [buildToolAt(`${toolhost.upstream.url}/thing`)];
    await toolhost.createServer({ slug: 'with-login', tools, oauth, authentication: { type: 'Bearer' } });
    const authentication = { type: 'ClientCredentials', ...client };
    await toolhost.createServer({ slug: 'with-client', tools, authentication });
    await toolhost.rest('PUT', '/servers/with-client/secrets/CLIENT_SECRET', { value: 'a-secret' });
  });
  after(async () => {
    await Promise.all([toolhost.stop(), provider.close()]);
    rmSync(dataDir, { recursive: true });
  });

  it('[find A3] rejects an unknown OAuth client within the CPU budget when 100,000 grants exist', async () => {
    const database = new DatabaseSync(join(dataDir, 'toolhost.sqlite'));
    database.exec(`insert into grants (id, workspace_id, server_id, slug, client_id, client_name, scope, agreement,
        sealed_tokens, tokens_version, generation, rotated_at, created_at)
      with recursive many (n) as (select 1 union all select n + 1 from many where n < 100000)
      select 'grt_' || n, workspace_id, id, slug, 'https://agent.example/client.json', 'Agent', '', '{}',
        '${'s'.repeat(1500)}', 1, 1, 1, n from many, servers where slug = 'with-login'`);
    database.close();
    for (const path of ['token', 'revoke']) {
      const body = new URLSearchParams({ client_id: 'https://absent.example/client.json', token: 'any' });
      const send = () => fetch(`${toolhost.url}/mcp/with-login/${path}`, { method: 'POST', body });
      const { status } = await toolhost.assertWithinBudget(path, send);
      assert.ok([400, 401].includes(status), `${path}: ${status}`);
    }
  });

  it('[find A3] parses any form of an unverified caller within the CPU budget', async () => {
    const form = 'application/x-www-form-urlencoded';
    const part = (i: number) => `--x\r\ncontent-disposition: form-data; name="__proto__[${i}]"\r\n\r\n\r\n`;
    const forms = { ...slowForms(65_000), multipart: repeatText(800, part) };
    for (const path of ['token', 'revoke', 'consent', 'register']) {
      for (const [label, body] of Object.entries(forms)) {
        const headers = { 'content-type': label === 'multipart' ? 'multipart/form-data; boundary=x' : form };
        const send = () => fetch(`${toolhost.url}/mcp/with-login/${path}`, { method: 'POST', headers, body });
        const { status } = await toolhost.assertWithinBudget(`${path}: ${label}`, send);
        assert.ok([400, 401, 403].includes(status), `${path}: ${label}: ${status}`);
      }
    }
  });

  it('[sec D14] parses any token endpoint response within the CPU budget', async () => {
    const names = `{${repeatText(20_000, (i) => `"n${i}":{},`)}"access_token":5}`;
    const jsonResponses = { names, depth: '['.repeat(250_000) };
    for (const [label, body] of Object.entries({ ...slowForms(250_000), ...jsonResponses })) {
      const type = label in jsonResponses ? 'application/json' : 'text/plain';
      toolhost.upstream.on('POST /token', () => ({ headers: { 'content-type': type }, body }));
      const response = await toolhost.measure(label).call('with-client', 'get');
      assert.match(response.text, /"isError":true/, label);
    }
  });

  /** Signs in at the provider. Returns the status of the login callback. */
  async function signIn(forgery: Forgery = {}) {
    const browser = createBrowser();
    const redirect = await browser.get(`${toolhost.url}/login`);
    if (redirect.status !== 302) return redirect.status;
    const { searchParams: authorizeParams } = getNextUrl(redirect);
    provider.setIdToken(authorizeParams.get('nonce') ?? '', forgery);
    const query = new URLSearchParams({ code: 'c', state: authorizeParams.get('state') ?? '', iss: provider.url });
    return (await browser.get(`${toolhost.url}/login/callback?${query}`)).status;
  }

  const makeKeySet = (count: number) =>
    JSON.stringify({
      keys: [...times(count, (i) => ({ ...provider.keys[0], kid: `k${i}` })), ...provider.keys],
    });

  it('[sec E6] parses any discovery document and key set within the CPU budget and rejects large ones', async () => {
    const megabytes = JSON.stringify({ issuer: 'x'.repeat(64 * 1024 * 1024) });
    const cases: [path: string, text: string, status: number][] = [
      ['/.well-known/openid-configuration', megabytes, 503],
      ['/.well-known/openid-configuration', '{"a":'.repeat(50_000), 503],
      ['/keys', megabytes, 401],
      ['/keys', makeKeySet(5000), 401],
      ['/keys', makeKeySet(500), 302],
    ];
    for (const [path, text, status] of cases) {
      provider.setResponse(path, text);
      const label = `${path} of ${text.length} characters`;
      assert.equal(await toolhost.assertWithinBudget(label, () => signIn()), status, label);
      provider.setResponse(path);
    }
  });

  it('[sec E6] rejects any forged ID token within the CPU budget and fetches the key set at most once', async () => {
    const keyRequestsBefore = provider.requestCount('/keys');
    const aud = times(10_000, (i) => `client-${i}`);
    const algorithms = ['PS999', '__proto__', 'toString', 5, null, ['ES256']];
    const forgeries: Record<string, Forgery> = {
      'megabytes of claims': { claims: { name: 'x'.repeat(5 * 1024 * 1024) } },
      'ten thousand audiences': { claims: { aud } },
      'a signed token within': {
        header: { cty: 'JWT' },
        wrap: (token) => `${token.split('.')[0]}.${Buffer.from(token).toString('base64url')}.AAAA`,
      },
      'an encrypted token': { wrap: (token) => `${token}.AAAA.AAAA` },
      'thousands of parts': { wrap: (token) => `${token}${'.A'.repeat(50_000)}` },
      'a compressed token': { header: { zip: 'DEF', enc: 'A256GCM' }, alg: 'dir' },
      'an extension that must be understood': { header: { crit: ['b64'], b64: false } },
      'keys in its header': {
        header: { jwk: provider.keys[0], jku: `${provider.url}/other`, x5u: `${provider.url}/other` },
        usesOtherKey: true,
      },
      'a key id of 100 KB': { header: { kid: 'k'.repeat(100_000) } },
      'a key id that is no text': { header: { kid: { toString: 'x' } } },
      ...Object.fromEntries(algorithms.map((alg) => [`the algorithm ${JSON.stringify(alg)}`, { alg }])),
      ...makeObject(10, (i) => [`the unknown key ${i}`, { header: { kid: `unknown-${i}` } }]),
      'a subject of 300 characters': { claims: { sub: 's'.repeat(300) } },
      'an empty subject': { claims: { sub: '' } },
    };
    for (const [label, forgery] of Object.entries(forgeries)) {
      assert.equal(await toolhost.assertWithinBudget(label, () => signIn(forgery)), 401, label);
    }
    const keyRequests = provider.requestCount('/keys') - keyRequestsBefore;
    assert.ok(keyRequests <= 1, `${keyRequests} requests for keys`);
    assert.equal(provider.requestCount('/other'), 0);
    assert.equal(await signIn(), 302);
  });
});
