import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { assertAlways } from '../support/properties.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const origin = 'https://api.example.com';
/** Slugs of another workspace, which must not be revealed. */
const otherWorkspaceSlugs = ['github-rest', 'projects-x', 'weather-api'];

for (const engine of engines) {
  describe(`an unknown name on ${engine}`, () => {
    let world: EngineToolhost;
    let toolhost: TestToolhost;
    before(async () => {
      world = await startToolhostOnEngine(engine);
      toolhost = world.toolhost;
      const tools = ['list_projects', 'create_project', 'get_task'].map((name) => buildToolAt(`${origin}/x`, { name }));
      for (const slug of ['github-read', 'projects', 'weather']) {
        await toolhost.createServer(buildServerAt(slug, origin, { tools }));
      }
      const other = await toolhost.createKey({ workspace: 'other' });
      for (const slug of otherWorkspaceSlugs)
        await toolhost.rest('POST', '/servers', { key: other, body: buildServerAt(slug, origin) });
    });
    after(() => world?.stop());

    const getDetail = async (method: string, path: string, options: { key?: string; body?: unknown } = {}) => {
      const { status, body } = await toolhost.rest(method, path, options);
      return { status, errorMessage: String(body.detail) };
    };

    it('[find D5] of a server returns the nearest one of the workspace', async () => {
      for (const [path, method] of [
        ['/servers/gihub-read', 'GET'],
        ['/servers/gihub-read/versions', 'GET'],
        ['/servers/gihub-read', 'DELETE'],
        ['/servers/gihub-read/limits', 'GET'],
        ['/servers/gihub-read/secrets', 'GET'],
      ] as const) {
        const { status, errorMessage } = await getDetail(method, path);
        assert.equal(status, 404, path);
        assert.equal(errorMessage, 'there is no such server in this workspace; did you mean `github-read`?', path);
      }
      const call = await getDetail('POST', '/servers/weathr/tools/get_task/call', { body: { arguments: {} } });
      assert.match(call.errorMessage, /did you mean `weather`\?/);
    });

    it('[find D5] that is only the beginning of a name returns that name too', async () => {
      assert.match((await getDetail('GET', '/servers/github')).errorMessage, /did you mean `github-read`\?/);
      assert.match((await getDetail('GET', '/servers/weather-report')).errorMessage, /did you mean `weather`\?/);
    });

    it('[find D5] of a server without a near match returns all names, or how to list many', async () => {
      const { errorMessage } = await getDetail('GET', '/servers/something-else-entirely');
      assert.equal(errorMessage, 'there is no such server in this workspace; it has: github-read, projects, weather');
      const key = await toolhost.createKey({ workspace: 'eleven' });
      assert.match((await getDetail('GET', '/servers/nothing-like-it', { key })).errorMessage, /; it has none$/);
      for (let at = 0; at < 11; at++) {
        await toolhost.rest('POST', '/servers', { key, body: buildServerAt(`of-eleven-${at}`, origin) });
      }
      const many = await getDetail('GET', '/servers/nothing-like-it', { key });
      assert.match(many.errorMessage, /^there is no such server in this workspace; listMcpServers .* lists them$/);
      assert.match((await getDetail('GET', '/servers/of-elven-7', { key })).errorMessage, /did you mean `of-eleven-7`/);
      const limited = await toolhost.createKey({ servers: ['weather'] });
      const other = await getDetail('GET', '/servers/projects', { key: limited });
      assert.equal(
        other.errorMessage,
        'there is no such server in this workspace; the credential is limited to: weather',
      );
    });

    it('[find D5] [sec E1] never reveals a slug of another workspace, or one that a limited key may not see', async () => {
      const limited = await toolhost.createKey({ servers: ['weather'] });
      const keys = [undefined, limited, await toolhost.createKey({ workspace: 'third' })];
      const similarSlug = fc.constantFrom('github-rest', 'projects-x', 'weather-api', 'projects', 'github-read');
      const typed = fc.tuple(similarSlug, fc.nat(10), fc.constantFrom('', 'x', '-y')).map(([slug, at, more]) => {
        const cut = at % slug.length;
        return `${slug.slice(0, cut)}${more}${slug.slice(cut + 1)}`;
      });
      await assertAlways(200, [typed, fc.constantFrom(...keys)], async (slug, key) => {
        const { errorMessage } = await getDetail('GET', `/servers/${slug}`, key === undefined ? {} : { key });
        const named = /`([^`]*)`/.exec(errorMessage)?.[1];
        const allowed = key === undefined ? ['github-read', 'projects', 'weather'] : key === limited ? ['weather'] : [];
        assert.ok(named === undefined || allowed.includes(named), errorMessage);
      });
      const unverifiedReply = await toolhost.rest('GET', '/servers/gihub-read', { key: 'thk_nonsense' });
      assert.equal(unverifiedReply.status, 401);
      assert.ok(!unverifiedReply.text.includes('github-read'));
      const mcp = await toolhost.rpc('gihub-read', undefined, 'tools/list');
      assert.ok(!mcp.text.includes('github-read'));
    });

    it('[find D5] of a tool returns the nearest one, at every entry point', async () => {
      const key = await toolhost.createKey();
      const expected = /there is no tool "list_project"; did you mean `list_projects`\?/;
      const statefulReply = await toolhost.rpc('projects', key, 'tools/call', { name: 'list_project', arguments: {} });
      assert.match(String((statefulReply.body.error as Json).message), expected);
      assert.equal((statefulReply.body.error as Json).code, -32602);
      const statelessReply = await toolhost.statelessRpc('projects', key, 'tools/call', {
        name: 'list_project',
        arguments: {},
      });
      assert.match(statelessReply.text, /did you mean `list_projects`/);
      const unrelatedReply = await toolhost.rpc('projects', key, 'tools/call', {
        name: 'nothing_of_that',
        arguments: {},
      });
      assert.match(unrelatedReply.text, /it has: list_projects, create_project, get_task/);
      const operation = await getDetail('POST', '/servers/projects/tools/list_project/preview', {
        body: { arguments: {} },
      });
      assert.match(operation.errorMessage, /has no tool "list_project"; did you mean `list_projects`\?/);
      const management = await toolhost.rpc('manage', key, 'tools/call', { name: 'listMcpServer', arguments: {} });
      assert.match(management.text, /did you mean `listMcpServers`/);
    });

    it('[find D5] of a secret or a version returns those that exist', async () => {
      await toolhost.createServer(buildServerAt('with-secrets', origin));
      assert.match(
        (await getDetail('DELETE', '/servers/with-secrets/secrets/API_KEY')).errorMessage,
        /has no secret API_KEY; it has none$/,
      );
      await toolhost.rest('PUT', '/servers/with-secrets/secrets/API_KEY', { body: { value: 'of-the-api' } });
      const nearSecret = await getDetail('DELETE', '/servers/with-secrets/secrets/APIKEY');
      assert.match(nearSecret.errorMessage, /has no secret APIKEY; did you mean `API_KEY`\?/);
      assert.match(
        (await getDetail('DELETE', '/servers/with-secrets/secrets/OTHER')).errorMessage,
        /; it has: API_KEY$/,
      );
      const version = await getDetail('POST', '/servers/with-secrets/versions/9/restore');
      assert.match(version.errorMessage, /has no version 9; the current version is 1, /);
    });

    it('[find D5] is not suggested for a slug that is taken: the error offers an update only within the workspace', async () => {
      const sameWorkspace = await toolhost.rest('POST', '/servers', { body: buildServerAt('projects', origin) });
      assert.equal(sameWorkspace.status, 409);
      const [problem] = sameWorkspace.body.problems as { path: string; message: string }[];
      assert.equal(problem?.path, 'slug');
      assert.match(
        String(problem?.message),
        /"projects" is used by a server of this workspace; .*updateMcpServer.*PUT \/api\/v1\/servers\/projects.*toolhost servers update/,
      );
      const otherWorkspace = await toolhost.rest('POST', '/servers', { body: buildServerAt('weather-api', origin) });
      assert.equal(
        String(otherWorkspace.body.detail),
        'slug: "weather-api" is taken or was used before; choose another slug',
      );
    });

    it('[find D3] of a server prevents the creation of a key', async () => {
      const createKey = (servers: string[], key?: string) =>
        toolhost.rest('POST', '/keys', { ...(key && { key }), body: { name: 'n', scopes: ['call'], servers } });
      const before = (await toolhost.rest('GET', '/keys')).text;
      const wrong = await createKey(['weather', 'project', 'nope-at-all', 'weather-api']);
      assert.equal(wrong.status, 400);
      const problems = wrong.body.problems as { path: string; message: string }[];
      assert.deepEqual(pluck(problems, 'path'), ['servers[1]', 'servers[2]', 'servers[3]']);
      assert.match(
        String(problems[0]?.message),
        /there is no server "project" in this workspace; did you mean `projects`\?/,
      );
      assert.match(String(problems[1]?.message), /"nope-at-all" in this workspace; it has: /);
      assert.match(String(problems[2]?.message), /"weather-api" in this workspace; did you mean `weather`/);
      assert.equal((await toolhost.rest('GET', '/keys')).text, before);
      assert.equal((await createKey(['weather'])).status, 201);
    });

    it('[find D3] of a deleted server does not invalidate a key for its other servers', async () => {
      await toolhost.createServer(buildServerAt('short-lived', origin));
      const key = await toolhost.createKey({ servers: ['short-lived', 'weather'] });
      await toolhost.rest('DELETE', '/servers/short-lived');
      assert.equal((await toolhost.rest('GET', '/servers/weather', { key })).status, 200);
      assert.equal((await toolhost.rest('GET', '/servers/short-lived', { key })).status, 404);
    });
  });
}
