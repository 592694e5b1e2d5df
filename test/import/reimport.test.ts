import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { openApi } from '../support/import/import-plans.ts';
import { pluck } from '../support/pluck.ts';
import { inPath, integer, query, text } from '../support/schemas.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

type Tool = Json & { name: string; description: string; disabled?: boolean; imported_from?: string };
type Reimport = Json & {
  counts: Record<string, number>;
  conflicts: { key: string; yours?: string; document?: string }[];
  edits: { tool: string; fields: { path: string; before?: string; after?: string }[] }[];
  offered: { operation: string; group: string; new?: true; removed?: true }[];
  gone: string[];
  added: string[];
  same_document: boolean;
  changed_server?: { server: { version: number } };
};

const id = inPath('id', text, { description: 'The id of a pet' });
const limit = query('limit', integer, { description: 'How many' });
const pet = (more: Json = {}) => ({
  get: { operationId: 'getPet', summary: 'Get one pet by its id', parameters: [id], ...more },
});
const list = (more: Json = {}) => ({
  get: { operationId: 'listPets', summary: 'List all the pets there are', parameters: [limit], ...more },
});
const owners = (more: Json = {}) => ({ get: { operationId: 'listOwners', summary: 'List owners', ...more } });
const mine = 'Mine, and long enough to say something.';
const theirs = 'Theirs, which is new';

/** Returns the description of a pet API with these paths. */
const createDocument = (paths: Json, more: Json = {}) =>
  JSON.stringify(openApi(paths, { servers: [{ url: 'https://pets.example.com' }], ...more }));
const firstDocument = createDocument({ '/pets/{id}': pet(), '/pets': list() });
const changedDocument = createDocument({ '/pets/{id}': pet({ summary: theirs }), '/pets': list() });

for (const engine of engines) {
  describe(`re-import on ${engine}`, () => {
    const running = useFixture(() => startToolhostOnEngine(engine));
    let key: string;
    let count = 0;
    before(async () => {
      key = await running.toolhost.createKey();
    });

    const sendRest = async (method: string, path: string, body?: Json, status = 200) => {
      const reply = await running.toolhost.rest(method, path, { key, ...(body && { body }) });
      assert.equal(reply.status, status, reply.text);
      return reply;
    };
    /** Imports a document, and returns the slug of the server. */
    async function importServer(document = firstDocument, more: Json = {}): Promise<string> {
      const slug = `pets-${engine}-${++count}`;
      await sendRest('POST', '/import', { mode: 'create', document, slug, include: ['*'], ...more });
      return slug;
    }
    async function importAndEdit(fields: Json): Promise<string> {
      const slug = await importServer();
      await sendRest('PATCH', `/servers/${slug}/tools/get_pet`, fields);
      return slug;
    }
    const reimport = async (slug: string, body: Json, status?: number) =>
      (await sendRest('POST', `/servers/${slug}/import`, body, status)) as Reply<Reimport>;
    const plan = async (slug: string, document: string, more: Json = {}) =>
      (await reimport(slug, { document, ...more })).body;
    const apply = async (slug: string, document: string, more: Json = {}) =>
      (await reimport(slug, { mode: 'apply', document, ...more })).body;
    const getConfig = async (slug: string) =>
      (await sendRest('GET', `/servers/${slug}`)).body.config as Json & { tools: Tool[] };
    const getTool = async (slug: string, name: string) =>
      (await getConfig(slug)).tools.find((tool) => tool.name === name);
    const getDescription = async (slug: string, name: string) => (await getTool(slug, name))?.description;

    it('[imp 5] keeps a tool unchanged when its operation can no longer be imported', async () => {
      const slug = await importAndEdit({ description: mine });
      const before = await getConfig(slug);
      const odd = { ...id, schema: { ...text, enum: ['{{A}}', 'b'] } };
      const document = createDocument({ '/pets/{id}': pet({ parameters: [odd] }), '/pets': list() });
      assert.deepEqual((await apply(slug, document)).gone, []);
      assert.deepEqual((await getConfig(slug)).tools, before.tools);
    });

    it('[imp 5] keeps edited fields, and updates all others from the document', async () => {
      const slug = await importAndEdit({ description: mine });
      const document = createDocument({
        '/pets/{id}': pet({ parameters: [{ ...id, description: 'Number of the pet' }] }),
        '/pets': list({ summary: 'List the pets of the shop' }),
      });
      const { counts } = await plan(slug, document);
      assert.deepEqual([counts.changed, counts.conflicts], [2, 0]);
      assert.equal(await getDescription(slug, 'list_pets'), 'List all the pets there are');
      assert.equal((await apply(slug, document)).changed_server?.server.version, 3);
      assert.equal(await getDescription(slug, 'get_pet'), mine);
      assert.match(JSON.stringify(await getTool(slug, 'get_pet')), /Number of the pet/);
      assert.equal(await getDescription(slug, 'list_pets'), 'List the pets of the shop');
    });

    it('[imp 5] keeps the answers to the import questions', async () => {
      const servers = [{ url: 'https://{shop}.example.com', variables: { shop: { default: 'a' } } }];
      const document = (summary: string) => createDocument({ '/pets': list({ summary }) }, { servers });
      const slug = await importServer(document('List all the pets there are'), { answers: { shop: 'first' } });
      await apply(slug, document('List the pets of a shop'));
      const { base_url, variables } = await getConfig(slug);
      assert.match(JSON.stringify([base_url, variables]), /first/);
    });

    it('[imp 5] reports a conflict, and keeps the edit unless the document side is taken', async () => {
      const slug = await importAndEdit({ description: mine });
      const { conflicts } = await plan(slug, changedDocument);
      assert.deepEqual(
        conflicts.map(({ key: name, yours, document }) => [name, yours, document]),
        [['get_pet.description', mine, theirs]],
      );
      await apply(slug, changedDocument);
      assert.equal(await getDescription(slug, 'get_pet'), mine);
      assert.deepEqual((await plan(slug, changedDocument)).conflicts, [], 'a resolved conflict is reported once');
      const otherSlug = await importAndEdit({ description: mine });
      await apply(otherSlug, changedDocument, { take: ['get_pet.description'] });
      assert.equal(await getDescription(otherSlug, 'get_pet'), theirs);
    });

    it('updates renamed tools in views, and reports tools there that were removed or no longer fit [agent 2]', async () => {
      const slug = await importServer();
      const createViews = (name: string) => ({ desk: { tools: ['get_pet', { name, arguments: { limit: 3 } }] } });
      await sendRest('PATCH', `/servers/${slug}`, { views: createViews('list_pets') });
      const moved = createDocument({ '/pets': list({ operationId: 'allPets' }) });
      assert.deepEqual((await plan(slug, moved)).views, [
        'desk: the tool "get_pet" was removed from the document, so it is removed from the view',
        'desk: the tool "list_pets" is renamed to "all_pets"',
      ]);
      await apply(slug, moved);
      assert.deepEqual((await getConfig(slug)).views, createViews('all_pets'));
      const withoutArgument = createDocument({ '/pets': list({ operationId: 'allPets', parameters: [] }) });
      const [problem = ''] = (await plan(slug, withoutArgument)).views as string[];
      const expected = 'views.desk.tools[1].arguments.limit: the tool has no argument "limit"; it has none';
      assert.equal(problem, `${expected}; change the view before you apply the import`);
      const refused = await reimport(slug, { mode: 'apply', document: withoutArgument }, 400);
      assert.ok(refused.text.includes('views.desk.tools[1].arguments.limit'));
    });

    it('[imp 5] offers new operations, and disables tools whose operation was removed', async () => {
      const slug = await importServer();
      const document = createDocument({ '/pets': list(), '/owners': owners() });
      const body = await apply(slug, document);
      assert.deepEqual(pluck(body.offered, 'operation'), ['GET /owners']);
      assert.deepEqual([body.gone, body.added], [['get_pet'], []]);
      assert.equal((await getTool(slug, 'get_pet'))?.disabled, true);
      assert.deepEqual((await apply(slug, document, { add: ['GET /owners'] })).added, ['list_owners']);
      assert.equal((await getTool(slug, 'list_owners'))?.imported_from, 'GET /owners');
      await sendRest('DELETE', `/servers/${slug}/tools/list_owners`);
      const [offered] = (await plan(slug, document)).offered;
      assert.deepEqual([offered?.operation, offered?.removed], ['GET /owners', true]);
    });

    it('[imp 5] follows a moved operation with the name, edits, and views of its tool', async () => {
      const owner = { get: { summary: 'Get the owner of a pet', parameters: [id] } };
      const fastApi = (version: number) => list({ operationId: `things_v${version}_things_get` });
      const first = { '/v1/pets/{id}': pet(), '/v1/pets': list(), '/v1/owners/{id}': owner, '/v1/things': fastApi(1) };
      const slug = await importServer(createDocument(first));
      await sendRest('PATCH', `/servers/${slug}/tools/list_pets`, { description: mine, url: '/v1/pets?all=1' });
      const views = { desk: { tools: ['get_pet', 'get_owner'] } };
      await sendRest('PATCH', `/servers/${slug}`, { views });
      const document = createDocument({
        '/v2/animals/{id}': pet({ summary: 'Get one animal by its id' }),
        '/v2/pets': list(),
        '/api/v2/owners/{owner}': { get: { ...owner.get, parameters: [{ ...id, name: 'owner' }] } },
        '/v2/things': fastApi(2),
        '/v2/owners': owners(),
      });
      const { moved, gone, counts, conflicts } = await plan(slug, document);
      assert.deepEqual(moved, [
        { tool: 'get_pet', from: 'GET /v1/pets/{id}', to: 'GET /v2/animals/{id}' },
        { tool: 'list_pets', from: 'GET /v1/pets', to: 'GET /v2/pets' },
        { tool: 'get_owner', from: 'GET /v1/owners/{id}', to: 'GET /api/v2/owners/{owner}' },
        { tool: 'things', from: 'GET /v1/things', to: 'GET /v2/things' },
      ]);
      assert.deepEqual([gone, counts.moved, counts.new], [[], 4, 1]);
      assert.deepEqual(pluck(conflicts, 'key'), ['list_pets.url']);
      await apply(slug, document, { take: ['list_pets.url'] });
      const after = await getConfig(slug);
      assert.deepEqual(
        after.tools.map(({ name, url, imported_from: from, disabled }) => [name, url, from, disabled]),
        [
          ['get_pet', '/v2/animals/:id', 'GET /v2/animals/{id}', undefined],
          ['list_pets', '/v2/pets', 'GET /v2/pets', undefined],
          ['get_owner', '/api/v2/owners/:owner', 'GET /api/v2/owners/{owner}', undefined],
          ['things', '/v2/things', 'GET /v2/things', undefined],
        ],
      );
      assert.deepEqual(after.views, views);
      assert.equal(await getDescription(slug, 'list_pets'), mine);
      const again = await plan(slug, document);
      assert.deepEqual([again.counts.moved, again.counts.changed, again.gone], [0, 0, []], 'the move is reported once');
      const third = { '/v3/a': pet(), '/v3/b': pet({ operationId: 'listPets' }), '/v3/owners': owner };
      const last = await plan(slug, createDocument(third));
      assert.deepEqual(last.moved, [
        { tool: 'get_pet', from: 'GET /v2/animals/{id}', to: 'GET /v3/a' },
        { tool: 'list_pets', from: 'GET /v2/pets', to: 'GET /v3/b' },
      ]);
      assert.deepEqual(last.gone, ['get_owner', 'things']);
    });

    it('[imp 5] keeps the server credential, and gives new tools another credential if their operations require it', async () => {
      const securitySchemes = {
        key: { type: 'apiKey', in: 'header', name: 'X-Key' },
        login: { type: 'http', scheme: 'bearer' },
      };
      const components = { components: { securitySchemes } };
      const withKey = { '/pets': list({ security: [{ key: [] }] }) };
      const withLogin = (operationId: string) => owners({ operationId, security: [{ login: [] }] });
      const slug = await importServer(createDocument(withKey, components));
      const more = { ...withKey, '/owners': withLogin('listOwners'), '/keepers': withLogin('listKeepers') };
      const document = createDocument(more, components);
      const { gone, changed, counts } = await apply(slug, document);
      assert.deepEqual([gone, changed, counts.offered], [[], [], 2]);
      assert.equal((await getConfig(slug)).credentials, undefined);
      const { added } = await apply(slug, document, { add: ['/owners', '/keepers'] });
      assert.deepEqual(added, ['list_owners', 'list_keepers']);
      const { authentication, credentials, tools } = await getConfig(slug);
      assert.deepEqual(authentication, { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' });
      assert.deepEqual(credentials, { login: { type: 'Bearer', token: '{{LOGIN_TOKEN}}' } });
      assert.deepEqual(pluck(tools, 'credential'), [undefined, 'login', 'login']);
      const unchanged = await plan(slug, document);
      assert.deepEqual([unchanged.counts.changed, unchanged.counts.unchanged, unchanged.server], [0, 3, []]);
      // A server whose callers send their own credential offers no operations that need a stored one.
      await sendRest('PATCH', `/servers/${slug}`, { authentication: { type: 'Bearer' }, credentials: null, tools: [] });
      assert.deepEqual((await plan(slug, document)).counts.offered, 2);
    });

    it('[imp 5] distinguishes new operations from skipped ones, and lists all of them on request', async () => {
      const slug = await importServer(firstDocument, { include: ['listPets'] });
      const tagged = owners({ tags: ['owners'] });
      const document = createDocument({ '/pets/{id}': pet(), '/pets': list(), '/owners': tagged });
      const { counts, offered } = await plan(slug, document);
      assert.deepEqual([counts.new, counts.offered], [1, 2]);
      const [only, ...others] = offered.map(({ operation, group, new: isNew }) => [operation, group, isNew]);
      assert.deepEqual([only, others], [['GET /owners', 'owners', true], []]);
      const all = (await plan(slug, document, { offered: 'all' })).offered;
      assert.deepEqual(pluck(all, 'operation'), ['GET /owners', 'GET /pets/{id}']);
      assert.deepEqual(pluck(all, 'new'), [true, undefined]);
      await apply(slug, document);
      assert.equal((await plan(slug, document)).counts.new, 0, 'an applied import marks the operation as known');
    });

    it('[imp 5] lists the edits that differ from the document, and applies only the planned document', async () => {
      const slug = await importAndEdit({ title: 'A pet', description: mine });
      const { edits, counts, conflicts, document_hash: hash } = await plan(slug, changedDocument);
      assert.deepEqual([counts.edits, conflicts.length], [1, 1], JSON.stringify(edits));
      assert.deepEqual(edits[0]?.fields, [{ path: 'title', after: 'A pet' }]);
      const takeAll = { mode: 'apply', take: ['*'], expected_document: hash };
      await reimport(slug, { ...takeAll, document: firstDocument }, 409);
      const { changed_server: changed } = await apply(slug, changedDocument, takeAll);
      assert.equal(changed?.server.version, 3);
      const [stays] = (await plan(slug, changedDocument)).edits;
      assert.deepEqual(stays?.fields, [{ path: 'title', after: 'A pet' }]);
    });

    it('[imp 5] creates one version, and restoring a version also restores its import base', async () => {
      const slug = await importServer();
      await apply(slug, changedDocument);
      await sendRest('POST', `/servers/${slug}/versions/1/restore`);
      assert.equal(await getDescription(slug, 'get_pet'), 'Get one pet by its id');
      const { changed, conflicts } = (await plan(slug, changedDocument)).counts;
      assert.deepEqual([changed, conflicts], [1, 0], 'the restored text does not count as an edit');
    });

    it('[imp 5] stores no version when the document is unchanged', async () => {
      const slug = await importAndEdit({ title: 'A pet' });
      const body = await apply(slug, firstDocument);
      assert.deepEqual([body.same_document, body.changed_server], [true, undefined]);
      assert.equal(((await sendRest('GET', `/servers/${slug}`)).body.server as Json).version, 2);
    });

    it('[imp 5] rejects servers that were not imported, and documents that cannot be read', async () => {
      await running.toolhost.createServer({ name: 'By hand', slug: `by-hand-${engine}`, tools: [] });
      const { text: refusal } = await reimport(`by-hand-${engine}`, { document: firstDocument }, 400);
      assert.match(refusal, /was not imported/);
      const slug = await importServer();
      await reimport(slug, {}, 400);
      await reimport(slug, { document: '{}' }, 400);
      await apply(slug, firstDocument, { expected_version: 7 });
      await reimport(slug, { mode: 'apply', document: changedDocument, expected_version: 7 }, 409);
    });
  });
}
