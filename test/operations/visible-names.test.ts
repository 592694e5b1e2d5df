import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

describe('a name that other people see', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost?.stop());

  const upstream = 'https://api.example.com';
  const server = (fields: Json) => ({ ...buildServerAt('shop', upstream), ...fields });
  const serverWithTool = (fields: Json) => server({ tools: [{ ...buildToolAt(`${upstream}/items`), ...fields }] });
  const serverWithView = (view: Json) => server({ views: { some: { tools: [buildToolAt(upstream).name], ...view } } });
  const getRequests = (name: string): Record<string, [method: string, path: string, body: Json]> => ({
    server: ['POST', '/servers', server({ name })],
    tool: ['POST', '/servers', serverWithTool({ title: name })],
    'tool annotation': ['POST', '/servers', serverWithTool({ annotations: { title: name } })],
    'tool tag': ['POST', '/servers', serverWithTool({ tags: [name] })],
    view: ['POST', '/servers', serverWithView({ title: name })],
    'tool of a view': [
      'POST',
      '/servers',
      serverWithView({ tools: [{ name: buildToolAt(upstream).name, title: name }] }),
    ],
    'server tag': ['PUT', '/servers/known/tags', { tags: [name] }],
    key: ['POST', '/keys', { name, scopes: ['call'] }],
    model: ['PUT', '/models/some', { kind: 'openai', model: name }],
    workspace: ['PATCH', '/workspace', { name }],
  });

  it('is one line of visible text, whatever it names [sec N1]', async () => {
    await toolhost.createServer(buildServerAt('known', upstream));
    const session = await createPersonSession(toolhost, { name: 'Ada' });
    const send = (method: string, path: string, body: Json) => personRequest(toolhost, session, method, path, body);
    const invisibleCharacters = [
      '\n',
      '\r',
      '\u2028',
      '\u2029',
      '\u0085',
      '\u0007',
      '\u202e',
      '\u2066',
      '\u200b',
      '\u00ad',
    ];
    for (const character of invisibleCharacters)
      for (const [label, request] of Object.entries(getRequests(`Jane${character}Subject: paid`))) {
        const { status, body } = await send(...request);
        const text = JSON.stringify(body);
        assert.deepEqual([status, /invisible character/.test(text)], [400, true], `${label}: ${text}`);
      }
    for (const [label, [method, path, body]] of Object.entries(getRequests('Größe 👩‍💻 नमस्ते (v2) & more'))) {
      const { slug } = body;
      const unique = slug === undefined ? body : { ...body, slug: `own-${label.replaceAll(' ', '-')}` };
      const { status, body: result } = await send(method, path, unique);
      assert.ok(status === 200 || status === 201, `${label}: ${JSON.stringify(result)}`);
    }
  });
});
