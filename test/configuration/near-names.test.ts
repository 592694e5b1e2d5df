import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { engines, tries } from '../sets.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { type EngineToolhost, startOn } from '../support/toolhost/engine-toolhost.ts';
import type { Json, TestToolhost } from '../support/toolhost/toolhost.ts';

const origin = 'https://api.example.com';
/** Slugs of another workspace, which must not be revealed. */
const foreign = ['github-rest', 'projects-x', 'weather-api'];

for (const engine of engines) {
  describe(`an unknown name on ${engine}`, () => {
    let world: EngineToolhost;
    let toolhost: TestToolhost;
    before(async () => {
      world = await startOn(engine);
      toolhost = world.toolhost;
      const tools = ['list_projects', 'create_project', 'get_task'].map((name) => toolAt(`${origin}/x`, { name }));
      for (const slug of ['github-read', 'projects', 'weather']) {
        await toolhost.createServer(serverAt(slug, origin, { tools }));
      }
      const other = await toolhost.key({ workspace: 'other' });
      for (const slug of foreign) await toolhost.rest('POST', '/servers', { key: other, body: serverAt(slug, origin) });
    });
    after(() => world?.stop());

    const detail = async (method: string, path: string, options: { key?: string; body?: unknown } = {}) => {
      const { status, body } = await toolhost.rest(method, path, options);
      return { status, said: String(body.detail) };
    };

    it('[find D5] of a server returns the nearest one of the workspace', async () => {
      for (const [path, method] of [
        ['/servers/gihub-read', 'GET'],
        ['/servers/gihub-read/versions', 'GET'],
        ['/servers/gihub-read', 'DELETE'],
        ['/servers/gihub-read/limits', 'GET'],
        ['/servers/gihub-read/secrets', 'GET'],
      ] as const) {
        const { status, said } = await detail(method, path);
        assert.equal(status, 404, path);
        assert.equal(said, 'there is no such server in this workspace; did you mean `github-read`?', path);
      }
      const call = await detail('POST', '/servers/weathr/tools/get_task/call', { body: { arguments: {} } });
      assert.match(call.said, /did you mean `weather`\?/);
    });

    it('[find D5] that is only the beginning of a name returns that name too', async () => {
      assert.match((await detail('GET', '/servers/github')).said, /did you mean `github-read`\?/);
      assert.match((await detail('GET', '/servers/weather-report')).said, /did you mean `weather`\?/);
    });

    it('[find D5] of a server without a near match returns all names, or how to list many', async () => {
      const { said } = await detail('GET', '/servers/something-else-entirely');
      assert.equal(said, 'there is no such server in this workspace; it has: github-read, projects, weather');
      const key = await toolhost.key({ workspace: 'eleven' });
      assert.match((await detail('GET', '/servers/nothing-like-it', { key })).said, /; it has none$/);
      for (let at = 0; at < 11; at++) {
        await toolhost.rest('POST', '/servers', { key, body: serverAt(`of-eleven-${at}`, origin) });
      }
      const many = await detail('GET', '/servers/nothing-like-it', { key });
      assert.match(many.said, /^there is no such server in this workspace; listMcpServers .* lists them$/);
      assert.match((await detail('GET', '/servers/of-elven-7', { key })).said, /did you mean `of-eleven-7`/);
      const limited = await toolhost.key({ servers: ['weather'] });
      const other = await detail('GET', '/servers/projects', { key: limited });
      assert.equal(other.said, 'there is no such server in this workspace; the credential is limited to: weather');
    });

    it('[find D5] [sec E1] never reveals a slug of another workspace, or one that a limited key may not see', async () => {
      const limited = await toolhost.key({ servers: ['weather'] });
      const keys = [undefined, limited, await toolhost.key({ workspace: 'third' })];
      const near = fc.constantFrom('github-rest', 'projects-x', 'weather-api', 'projects', 'github-read');
      const typed = fc.tuple(near, fc.nat(10), fc.constantFrom('', 'x', '-y')).map(([slug, at, more]) => {
        const cut = at % slug.length;
        return `${slug.slice(0, cut)}${more}${slug.slice(cut + 1)}`;
      });
      await fc.assert(
        fc.asyncProperty(typed, fc.constantFrom(...keys), async (slug, key) => {
          const { said } = await detail('GET', `/servers/${slug}`, key === undefined ? {} : { key });
          const named = /`([^`]*)`/.exec(said)?.[1];
          const allowed =
            key === undefined ? ['github-read', 'projects', 'weather'] : key === limited ? ['weather'] : [];
          assert.ok(named === undefined || allowed.includes(named), said);
        }),
        { numRuns: tries(200) },
      );
      const stranger = await toolhost.rest('GET', '/servers/gihub-read', { key: 'thk_nonsense' });
      assert.equal(stranger.status, 401);
      assert.ok(!stranger.text.includes('github-read'));
      const mcp = await toolhost.rpc('gihub-read', undefined, 'tools/list');
      assert.ok(!mcp.text.includes('github-read'));
    });

    it('[find D5] of a tool returns the nearest one, at every entry point', async () => {
      const key = await toolhost.key();
      const expected = /there is no tool "list_project"; did you mean `list_projects`\?/;
      const legacy = await toolhost.rpc('projects', key, 'tools/call', { name: 'list_project', arguments: {} });
      assert.match(String((legacy.body.error as Json).message), expected);
      assert.equal((legacy.body.error as Json).code, -32602);
      const modern = await toolhost.modern('projects', key, 'tools/call', { name: 'list_project', arguments: {} });
      assert.match(modern.text, /did you mean `list_projects`/);
      const far = await toolhost.rpc('projects', key, 'tools/call', { name: 'nothing_of_that', arguments: {} });
      assert.match(far.text, /it has: list_projects, create_project, get_task/);
      const operation = await detail('POST', '/servers/projects/tools/list_project/preview', {
        body: { arguments: {} },
      });
      assert.match(operation.said, /has no tool "list_project"; did you mean `list_projects`\?/);
      const management = await toolhost.rpc('manage', key, 'tools/call', { name: 'listMcpServer', arguments: {} });
      assert.match(management.text, /did you mean `listMcpServers`/);
    });

    it('[find D5] of a secret or a version returns those that exist', async () => {
      await toolhost.createServer(serverAt('with-secrets', origin));
      assert.match(
        (await detail('DELETE', '/servers/with-secrets/secrets/API_KEY')).said,
        /has no secret API_KEY; it has none$/,
      );
      await toolhost.rest('PUT', '/servers/with-secrets/secrets/API_KEY', { body: { value: 'of-the-api' } });
      const near = await detail('DELETE', '/servers/with-secrets/secrets/APIKEY');
      assert.match(near.said, /has no secret APIKEY; did you mean `API_KEY`\?/);
      assert.match((await detail('DELETE', '/servers/with-secrets/secrets/OTHER')).said, /; it has: API_KEY$/);
      const version = await detail('POST', '/servers/with-secrets/versions/9/restore');
      assert.match(version.said, /has no version 9; the current version is 1, /);
    });

    it('[find D5] is not suggested for a slug that is taken: the error offers an update only within the workspace', async () => {
      const own = await toolhost.rest('POST', '/servers', { body: serverAt('projects', origin) });
      assert.equal(own.status, 409);
      const [problem] = own.body.problems as { path: string; message: string }[];
      assert.equal(problem?.path, 'slug');
      assert.match(
        String(problem?.message),
        /"projects" is used by a server of this workspace; .*updateMcpServer.*PUT \/api\/v1\/servers\/projects.*toolhost servers update/,
      );
      const theirs = await toolhost.rest('POST', '/servers', { body: serverAt('weather-api', origin) });
      assert.equal(String(theirs.body.detail), 'slug: "weather-api" is taken or was used before; choose another slug');
    });

    it('[find D3] of a server prevents the creation of a key', async () => {
      const make = (servers: string[], key?: string) =>
        toolhost.rest('POST', '/keys', { ...(key && { key }), body: { name: 'n', scopes: ['call'], servers } });
      const before = (await toolhost.rest('GET', '/keys')).text;
      const wrong = await make(['weather', 'project', 'nope-at-all', 'weather-api']);
      assert.equal(wrong.status, 400);
      const problems = wrong.body.problems as { path: string; message: string }[];
      assert.deepEqual(
        problems.map(({ path }) => path),
        ['servers[1]', 'servers[2]', 'servers[3]'],
      );
      assert.match(
        String(problems[0]?.message),
        /there is no server "project" in this workspace; did you mean `projects`\?/,
      );
      assert.match(String(problems[1]?.message), /"nope-at-all" in this workspace; it has: /);
      assert.match(String(problems[2]?.message), /"weather-api" in this workspace; did you mean `weather`/);
      assert.equal((await toolhost.rest('GET', '/keys')).text, before);
      assert.equal((await make(['weather'])).status, 201);
    });

    it('[find D3] of a deleted server does not invalidate a key for its other servers', async () => {
      await toolhost.createServer(serverAt('short-lived', origin));
      const key = await toolhost.key({ servers: ['short-lived', 'weather'] });
      await toolhost.rest('DELETE', '/servers/short-lived');
      assert.equal((await toolhost.rest('GET', '/servers/weather', { key })).status, 200);
      assert.equal((await toolhost.rest('GET', '/servers/short-lived', { key })).status, 404);
    });
  });
}
