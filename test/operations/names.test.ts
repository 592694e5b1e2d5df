import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { personSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

describe('a name that other people see', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost?.stop());

  const upstream = 'https://api.example.com';
  const server = (fields: Json) => ({ ...serverAt('shop', upstream), ...fields });
  const titled = (fields: Json) => server({ tools: [{ ...toolAt(`${upstream}/items`), ...fields }] });
  const inView = (view: Json) => server({ views: { some: { tools: [toolAt(upstream).name], ...view } } });
  const byName = (name: string): Record<string, [method: string, path: string, body: Json]> => ({
    server: ['POST', '/servers', server({ name })],
    tool: ['POST', '/servers', titled({ title: name })],
    'tool annotation': ['POST', '/servers', titled({ annotations: { title: name } })],
    'tool tag': ['POST', '/servers', titled({ tags: [name] })],
    view: ['POST', '/servers', inView({ title: name })],
    'tool of a view': ['POST', '/servers', inView({ tools: [{ name: toolAt(upstream).name, title: name }] })],
    'server tag': ['PUT', '/servers/known/tags', { tags: [name] }],
    key: ['POST', '/keys', { name, scopes: ['call'] }],
    model: ['PUT', '/models/some', { kind: 'openai', model: name }],
    workspace: ['PATCH', '/workspace', { name }],
  });

  it('is one line of visible text, whatever it names [sec N1]', async () => {
    await toolhost.createServer(serverAt('known', upstream));
    const session = await personSession(toolhost, { name: 'Ada' });
    const send = (method: string, path: string, body: Json) => personRequest(toolhost, session, method, path, body);
    const breaks = ['\n', '\r', '\u2028', '\u2029', '\u0085', '\u0007', '\u202e', '\u2066', '\u200b', '\u00ad'];
    for (const character of breaks)
      for (const [what, request] of Object.entries(byName(`Jane${character}Subject: paid`))) {
        const { status, body } = await send(...request);
        const text = JSON.stringify(body);
        assert.deepEqual([status, /invisible character/.test(text)], [400, true], `${what}: ${text}`);
      }
    for (const [what, [method, path, body]] of Object.entries(byName('Größe 👩‍💻 नमस्ते (v2) & more'))) {
      const { slug } = body;
      const unique = slug === undefined ? body : { ...body, slug: `own-${what.replaceAll(' ', '-')}` };
      const { status, body: answer } = await send(method, path, unique);
      assert.ok(status === 200 || status === 201, `${what}: ${JSON.stringify(answer)}`);
    }
  });
});
