import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, oauthConfig } from '../support/valid-configs.ts';

/** Configuration in which nearly every field has a value. */
const fullConfig = buildServerConfig({
  description: 'Things of an API',
  authentication: {
    ...{ type: 'ClientCredentials', token_url: 'https://login.example.com/token', scopes: ['read'] },
    ...{ client_id: 'client', client_secret: '{{SECRET}}', extra_params: { tenant: 'a' } },
    ...{ audience: 'https://api.example.com', resource: 'https://api.example.com' },
  },
  base_url: 'https://api.example.com/v1',
  headers: { 'X-Version': '1' },
  variables: { REGION: { value: 'eu', description: 'Where', enum: ['eu', 'us'] } },
  imported: { id: 'imp_1', document: 'https://api.example.com/openapi.json' },
  tools: [
    {
      ...{ name: 'find', title: 'Find', description: 'Finds things of an owner.' },
      ...{ method: 'GET', url: '/things/:id?kind=a', headers: { 'X-Tool': 'a' } },
      input_schema: {
        id: { type: 'string', description: 'Id', examples: ['a'] },
        kinds: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, wire_name: 'k', style: 'repeat' },
        state: { type: 'string', default: 'open', optional: true },
        fixed: { type: 'object', value: { a: ['b'] } },
      },
      ...{ response_fields: ['a.b'], response_headers: ['Link'], tags: ['things'] },
    },
    {
      ...{ name: 'upload', description: 'Uploads a file of an owner.' },
      ...{ method: 'POST', url: '/files', body: 'multipart' },
      input_schema: { f: { type: 'string', content: 'base64', file_name: 'a.png', media_type: 'image/png' } },
    },
    {
      ...{ name: 'create', description: 'Creates a thing of an owner.', method: 'POST', url: '/things' },
      input_schema: { type: 'object', properties: { o: { type: 'object', properties: { p: { const: 'c' } } } } },
    },
    { name: 'ask', description: 'Asks for things.', method: 'POST', url: '/ask', body_template: { q: ['{ a }'] } },
  ],
  views: { support: { description: 'For the desk', tools: [{ name: 'find', arguments: { state: 'closed' } }] } },
});
const withLogin = buildServerConfig({
  authentication: [
    { type: 'QueryParam', query_key: 'token' },
    { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' },
  ],
  oauth: {
    ...oauthConfig,
    authorization_url: 'https://login.example.com/authorize?tenant=a',
    scopes: ['read'],
    extra_params: { prompt: 'consent' },
  },
});

/** Yields copies of the value, each with another text in place of one string or one key. */
function* createVariants(value: unknown, replace: (old: string) => string): Generator<unknown> {
  if (typeof value === 'string') yield replace(value);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const entries = Object.entries(value);
    const replaceEntry = (replacement: [string, unknown]) =>
      Array.isArray(value)
        ? value.map((old, index) => (String(index) === name ? replacement[1] : old))
        : Object.fromEntries(entries.map((entry) => (entry[0] === name ? replacement : entry)));
    if (!Array.isArray(value)) yield replaceEntry([replace(name), inner]);
    for (const other of createVariants(inner, replace)) yield replaceEntry([name, other]);
  }
}

describe('a credential of this service in a server configuration', () => {
  it('[find B3] is rejected in every text and every key of a configuration (property)', async (t) => {
    const toolhost = await startToolhost();
    t.after(() => toolhost.stop());
    const key = await toolhost.createKey();
    const secret = 'aB3'.repeat(14);
    const shapes: ((put: string) => (old: string) => string)[] = [
      (put) => () => put,
      (put) => (old) => `${old} ${put}`,
      (put) => (old) => `${old}/${put}`,
      (put) => (old) => `${old}${old.includes('?') ? '&' : '?'}k=${put}`,
    ];
    const validate = async (body: unknown) => (await toolhost.rest('POST', '/check', { key, body })).body.problems;
    // A harmless text of the same alphabet shows which fields accept such a text at all.
    const pairs = [
      { credential: `tha_${secret}z`, harmless: `tha_${secret}zz` },
      { credential: btoa(key), harmless: btoa('x'.repeat(key.length)) },
    ];
    let acceptedCount = 0;
    for (const config of [fullConfig, withLogin]) {
      assert.deepEqual(await validate(config), []);
      for (const shape of shapes)
        for (const { credential, harmless } of pairs) {
          const variantsWithCredential = [...createVariants(config, shape(credential))];
          for (const [index, other] of [...createVariants(config, shape(harmless))].entries()) {
            if (((await validate(other)) as unknown[]).length > 0) continue;
            acceptedCount++;
            const problems = (await validate(variantsWithCredential[index])) as { path: string; message: string }[];
            const [{ path = '', message = '' } = {}] = problems;
            assert.match(message, /never sent to an upstream/, JSON.stringify(variantsWithCredential[index]));
            assert.equal(path.includes(credential), false);
          }
        }
    }
    assert.ok(acceptedCount > 200, `${acceptedCount} fields accepted the harmless text`);
  });
});
