import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { createPersonClient } from '../support/toolhost/rest-clients.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

describe('a name that other people see', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  const upstream = 'https://api.example.com';
  const server = (fields: Json) => ({ ...buildServerAt('shop', upstream), ...fields });
  const serverWithTool = (fields: Json) => server({ tools: [{ ...buildToolAt(`${upstream}/items`), ...fields }] });
  const serverWithView = (view: Json) => server({ views: { some: { tools: ['get'], ...view } } });
  const getRequests = (name: string): Record<string, [method: string, path: string, body: Json]> => ({
    server: ['POST', '/servers', server({ name })],
    tool: ['POST', '/servers', serverWithTool({ title: name })],
    'tool annotation': ['POST', '/servers', serverWithTool({ annotations: { title: name } })],
    'tool tag': ['POST', '/servers', serverWithTool({ tags: [name] })],
    view: ['POST', '/servers', serverWithView({ title: name })],
    'tool of a view': ['POST', '/servers', serverWithView({ tools: [{ name: 'get', title: name }] })],
    'server tag': ['PUT', '/servers/known/tags', { tags: [name] }],
    key: ['POST', '/keys', { name, scopes: ['call'] }],
    model: ['PUT', '/models/some', { kind: 'openai', model: name }],
    workspace: ['PATCH', '/workspace', { name }],
  });

  it('is one line of visible text, whatever it names [sec N1]', async () => {
    await toolhost.createServer(buildServerAt('known', upstream));
    const send = createPersonClient(toolhost, await createPersonSession(toolhost, { name: 'Ada' }));
    for (const character of '\n\r\u2028\u2029\u0085\u0007\u202e\u2066\u200b\u00ad')
      for (const [label, request] of Object.entries(getRequests(`Jane${character}Subject: paid`))) {
        const { status, body } = await send(...request);
        assert.match(`${status} ${JSON.stringify(body)}`, /^400 .*invisible character/, label);
      }
    for (const [label, [method, path, body]] of Object.entries(getRequests('Größe 👩‍💻 नमस्ते (v2) & more'))) {
      const { slug } = body;
      const unique = slug === undefined ? body : { ...body, slug: `own-${label.replaceAll(' ', '-')}` };
      const { status, body: result } = await send(method, path, unique);
      assert.ok(status === 200 || status === 201, `${label}: ${JSON.stringify(result)}`);
    }
  });
});
