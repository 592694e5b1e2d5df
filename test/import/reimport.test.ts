import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { openApi } from '../support/import/import-plans.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply, TestToolhost } from '../support/toolhost/toolhost.ts';

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

const text = { type: 'string' };
const pet = (more: Json = {}) => ({
  get: { operationId: 'getPet', summary: 'Get one pet by its id', parameters: [id], ...more },
});
const id = { name: 'id', in: 'path', required: true, schema: text, description: 'The id of a pet' };
const list = (more: Json = {}) => ({
  get: { operationId: 'listPets', summary: 'List all the pets there are', parameters: [limit], ...more },
});
const limit = { name: 'limit', in: 'query', schema: { type: 'integer' }, description: 'How many' };

/** Returns the description of a pet API with these paths. */
const createDocument = (paths: Json, more: Json = {}) =>
  JSON.stringify(openApi(paths, { servers: [{ url: 'https://pets.example.com' }], ...more }));
const firstDocument = createDocument({ '/pets/{id}': pet(), '/pets': list() });

for (const engine of engines) {
  describe(`re-import on ${engine}`, () => {
    let running: EngineToolhost;
    let toolhost: TestToolhost;
    let key: string;
    let count = 0;
    before(async () => {
      running = await startToolhostOnEngine(engine);
      toolhost = running.toolhost;
      key = await toolhost.createKey();
    });
    after(() => running?.stop());

    const sendRest = (method: string, path: string, body?: Json) =>
      toolhost.rest(method, path, { key, ...(body && { body }) });
    async function importServer(document = firstDocument, more: Json = {}): Promise<string> {
      const slug = `pets-${engine}-${++count}`;
      const body = { mode: 'create', document, slug, include: ['*'], ...more };
      const reply = await sendRest('POST', '/import', body);
      assert.equal(reply.status, 200, reply.text);
      return slug;
    }
    const reimport = (slug: string, body: Json) =>
      sendRest('POST', `/servers/${slug}/import`, body) as Promise<Reply<Reimport>>;
    const getConfig = async (slug: string) =>
      (await sendRest('GET', `/servers/${slug}`)).body.config as Json & { tools: Tool[] };
    const getTool = async (slug: string, name: string) =>
      (await getConfig(slug)).tools.find((tool) => tool.name === name);
    const edit = (slug: string, tool: string, fields: Json) =>
      sendRest('PATCH', `/servers/${slug}/tools/${tool}`, fields);

    it('[imp 5] keeps a tool unchanged when its operation can no longer be imported', async () => {
      const slug = await importServer();
      await edit(slug, 'get_pet', { description: 'Finds a pet by its number.' });
      const before = await getConfig(slug);
      const odd = { ...id, schema: { ...text, enum: ['{{A}}', 'b'] } };
      const document = createDocument({ '/pets/{id}': pet({ parameters: [odd] }), '/pets': list() });
      const applied = await reimport(slug, { mode: 'apply', document });
      assert.equal(applied.status, 200, applied.text);
      assert.deepEqual(applied.body.gone, []);
      assert.deepEqual((await getConfig(slug)).tools, before.tools);
    });

    it('[imp 5] keeps edited fields, and updates all others from the document', async () => {
      const slug = await importServer();
      const edited = await edit(slug, 'get_pet', { description: 'Finds a pet by its number.' });
      assert.equal(edited.status, 200, edited.text);
      const document = createDocument({
        '/pets/{id}': pet({
          summary: 'Get one pet by its id',
          parameters: [{ ...id, description: 'Number of the pet' }],
        }),
        '/pets': list({ summary: 'List the pets of the shop' }),
      });
      const plan = await reimport(slug, { document });
      assert.equal(plan.status, 200, plan.text);
      assert.deepEqual([plan.body.counts.changed, plan.body.counts.conflicts], [2, 0]);
      assert.equal((await getTool(slug, 'list_pets'))?.description, 'List all the pets there are');
      const applied = await reimport(slug, { mode: 'apply', document });
      assert.equal(applied.body.changed_server?.server.version, 3, applied.text);
      const pets = await getTool(slug, 'get_pet');
      assert.equal(pets?.description, 'Finds a pet by its number.');
      assert.match(JSON.stringify(pets), /Number of the pet/);
      assert.equal((await getTool(slug, 'list_pets'))?.description, 'List the pets of the shop');
    });

    it('[imp 5] keeps the answers to the import questions', async () => {
      const servers = [{ url: 'https://{shop}.example.com', variables: { shop: { default: 'a' } } }];
      const document = (summary: string) => createDocument({ '/pets': list({ summary }) }, { servers });
      const slug = await importServer(document('List all the pets there are'), { answers: { shop: 'first' } });
      const applied = await reimport(slug, { mode: 'apply', document: document('List the pets of a shop') });
      assert.equal(applied.status, 200, applied.text);
      const { base_url, variables } = await getConfig(slug);
      assert.match(JSON.stringify([base_url, variables]), /first/);
    });

    it('[imp 5] reports a conflict, and keeps the edit unless the document side is taken', async () => {
      const slug = await importServer();
      await edit(slug, 'get_pet', { description: 'Mine, and long enough to say something.' });
      const document = createDocument({ '/pets/{id}': pet({ summary: 'Theirs, which is new' }), '/pets': list() });
      const { body } = await reimport(slug, { document });
      assert.deepEqual(
        body.conflicts.map(({ key: name, yours, document: theirs }) => [name, yours, theirs]),
        [['get_pet.description', 'Mine, and long enough to say something.', 'Theirs, which is new']],
      );
      await reimport(slug, { mode: 'apply', document });
      assert.equal((await getTool(slug, 'get_pet'))?.description, 'Mine, and long enough to say something.');
      assert.deepEqual(
        (await reimport(slug, { document })).body.conflicts,
        [],
        'a resolved conflict is not reported again',
      );
      const otherSlug = await importServer();
      await edit(otherSlug, 'get_pet', { description: 'Mine, and long enough to say something.' });
      await reimport(otherSlug, { mode: 'apply', document, take: ['get_pet.description'] });
      assert.equal((await getTool(otherSlug, 'get_pet'))?.description, 'Theirs, which is new');
    });

    it('updates renamed tools in views, and reports tools there that were removed or no longer fit [agent 2]', async () => {
      const slug = await importServer();
      const views = { desk: { tools: ['get_pet', { name: 'list_pets', arguments: { limit: 3 } }] } };
      assert.equal((await sendRest('PATCH', `/servers/${slug}`, { views })).status, 200);
      const renamed = { get: { ...list().get, operationId: 'allPets' } };
      const moved = createDocument({ '/pets': renamed });
      const plan = await reimport(slug, { document: moved });
      assert.deepEqual(plan.body.views, [
        'desk: the tool "get_pet" was removed from the document, so it is removed from the view',
        'desk: the tool "list_pets" is renamed to "all_pets"',
      ]);
      const applied = await reimport(slug, { mode: 'apply', document: moved });
      assert.equal(applied.status, 200, applied.text);
      assert.deepEqual((await getConfig(slug)).views, {
        desk: { tools: ['get_pet', { name: 'all_pets', arguments: { limit: 3 } }] },
      });
      const documentWithoutArgument = createDocument({ '/pets': { get: { ...renamed.get, parameters: [] } } });
      const [problem = ''] = (await reimport(slug, { document: documentWithoutArgument })).body.views as string[];
      const expected = 'views.desk.tools[1].arguments.limit: the tool has no argument "limit"; it has none';
      assert.equal(problem, `${expected}; change the view before you apply the import`);
      const refused = await reimport(slug, { mode: 'apply', document: documentWithoutArgument });
      assert.equal(refused.status, 400);
      assert.ok(refused.text.includes('views.desk.tools[1].arguments.limit'));
    });

    it('[imp 5] offers new operations, and disables tools whose operation was removed', async () => {
      const slug = await importServer();
      const document = createDocument({
        '/pets': list(),
        '/owners': { get: { operationId: 'listOwners', summary: 'List owners' } },
      });
      const { body } = await reimport(slug, { mode: 'apply', document });
      assert.deepEqual(
        body.offered.map(({ operation }) => operation),
        ['GET /owners'],
      );
      assert.deepEqual([body.gone, body.added], [['get_pet'], []]);
      assert.equal((await getTool(slug, 'get_pet'))?.disabled, true);
      const added = await reimport(slug, { mode: 'apply', document, add: ['GET /owners'] });
      assert.deepEqual(added.body.added, ['list_owners'], added.text);
      assert.equal((await getTool(slug, 'list_owners'))?.imported_from, 'GET /owners');
      await sendRest('DELETE', `/servers/${slug}/tools/list_owners`);
      const [offered] = (await reimport(slug, { document })).body.offered;
      assert.deepEqual([offered?.operation, offered?.removed], ['GET /owners', true]);
    });

    it('[imp 5] follows a moved operation with the name, edits, and views of its tool', async () => {
      const owner = { get: { summary: 'Get the owner of a pet', parameters: [id] } };
      const fastApi = (version: number) => list({ operationId: `things_v${version}_things_get` });
      const slug = await importServer(
        createDocument({
          '/v1/pets/{id}': pet(),
          '/v1/pets': list(),
          '/v1/owners/{id}': owner,
          '/v1/things': fastApi(1),
        }),
      );
      await edit(slug, 'list_pets', { description: 'Mine, and long enough to say something.', url: '/v1/pets?all=1' });
      const views = { desk: { tools: ['get_pet', 'get_owner'] } };
      assert.equal((await sendRest('PATCH', `/servers/${slug}`, { views })).status, 200);
      const document = createDocument({
        '/v2/animals/{id}': pet({ summary: 'Get one animal by its id' }),
        '/v2/pets': list(),
        '/api/v2/owners/{owner}': { get: { ...owner.get, parameters: [{ ...id, name: 'owner' }] } },
        '/v2/things': fastApi(2),
        '/v2/owners': { get: { operationId: 'listOwners', summary: 'List owners' } },
      });
      const plan = await reimport(slug, { document });
      assert.deepEqual(plan.body.moved, [
        { tool: 'get_pet', from: 'GET /v1/pets/{id}', to: 'GET /v2/animals/{id}' },
        { tool: 'list_pets', from: 'GET /v1/pets', to: 'GET /v2/pets' },
        { tool: 'get_owner', from: 'GET /v1/owners/{id}', to: 'GET /api/v2/owners/{owner}' },
        { tool: 'things_v1_things_get', from: 'GET /v1/things', to: 'GET /v2/things' },
      ]);
      assert.deepEqual([plan.body.gone, plan.body.counts.moved, plan.body.counts.new], [[], 4, 1], plan.text);
      assert.deepEqual(
        plan.body.conflicts.map(({ key: name }) => name),
        ['list_pets.url'],
      );
      const applied = await reimport(slug, { mode: 'apply', document, take: ['list_pets.url'] });
      assert.equal(applied.status, 200, applied.text);
      const after = await getConfig(slug);
      assert.deepEqual(
        after.tools.map(({ name, url, imported_from: from, disabled }) => [name, url, from, disabled]),
        [
          ['get_pet', '/v2/animals/:id', 'GET /v2/animals/{id}', undefined],
          ['list_pets', '/v2/pets', 'GET /v2/pets', undefined],
          ['get_owner', '/api/v2/owners/:owner', 'GET /api/v2/owners/{owner}', undefined],
          ['things_v1_things_get', '/v2/things', 'GET /v2/things', undefined],
        ],
      );
      assert.deepEqual(after.views, views);
      assert.equal((await getTool(slug, 'list_pets'))?.description, 'Mine, and long enough to say something.');
      const { counts, gone } = (await reimport(slug, { document })).body;
      assert.deepEqual([counts.moved, counts.changed, gone], [0, 0, []], 'the move is reported once');
      const thirdDocument = createDocument({
        '/v3/a': pet(),
        '/v3/b': pet({ operationId: 'listPets' }),
        '/v3/owners': owner,
      });
      const third = (await reimport(slug, { document: thirdDocument })).body;
      assert.deepEqual(third.moved, [
        { tool: 'get_pet', from: 'GET /v2/animals/{id}', to: 'GET /v3/a' },
        { tool: 'list_pets', from: 'GET /v2/pets', to: 'GET /v3/b' },
      ]);
      assert.deepEqual(third.gone, ['get_owner', 'things_v1_things_get']);
    });

    it('[imp 5] keeps the server credential, and gives new tools another credential if their operations require it', async () => {
      const securitySchemes = {
        key: { type: 'apiKey', in: 'header', name: 'X-Key' },
        login: { type: 'http', scheme: 'bearer' },
      };
      const withKey = { '/pets': list({ security: [{ key: [] }] }) };
      const owners = (name: string) => ({
        get: { operationId: name, summary: 'List the owners of pets', security: [{ login: [] }] },
      });
      const slug = await importServer(createDocument(withKey, { components: { securitySchemes } }));
      const more = { ...withKey, '/owners': owners('listOwners'), '/keepers': owners('listKeepers') };
      const document = createDocument(more, { components: { securitySchemes } });
      const { body, text: replyText } = await reimport(slug, { mode: 'apply', document });
      assert.deepEqual([body.gone, body.changed, body.counts.offered], [[], [], 2], replyText);
      assert.equal((await getConfig(slug)).credentials, undefined);
      const added = await reimport(slug, { mode: 'apply', document, add: ['/owners', '/keepers'] });
      assert.deepEqual(added.body.added, ['list_owners', 'list_keepers'], added.text);
      const config = await getConfig(slug);
      assert.deepEqual(
        [config.authentication, config.credentials, config.tools.map(({ credential }) => credential)],
        [
          { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' },
          { login: { type: 'Bearer', token: '{{LOGIN_TOKEN}}' } },
          [undefined, 'login', 'login'],
        ],
      );
      const { body: unchanged } = await reimport(slug, { document });
      assert.deepEqual([unchanged.counts.changed, unchanged.counts.unchanged, unchanged.server], [0, 3, []]);
      // A server whose callers send their own credential offers no operations that need a stored one.
      await sendRest('PATCH', `/servers/${slug}`, { authentication: { type: 'Bearer' }, credentials: null, tools: [] });
      assert.deepEqual((await reimport(slug, { document })).body.counts.offered, 2);
    });

    it('[imp 5] distinguishes new operations from skipped ones, and lists all of them on request', async () => {
      const slug = await importServer(firstDocument, { include: ['listPets'] });
      const owners = { get: { operationId: 'listOwners', summary: 'List owners', tags: ['owners'] } };
      const document = createDocument({ '/pets/{id}': pet(), '/pets': list(), '/owners': owners });
      const { counts, offered } = (await reimport(slug, { document })).body;
      assert.deepEqual([counts.new, counts.offered], [1, 2]);
      assert.deepEqual(
        offered.map(({ operation, group, new: isNew }) => [operation, group, isNew]),
        [['GET /owners', 'owners', true]],
      );
      const all = (await reimport(slug, { document, offered: 'all' })).body.offered;
      assert.deepEqual(
        all.map(({ operation, new: isNew }) => [operation, isNew]),
        [
          ['GET /owners', true],
          ['GET /pets/{id}', undefined],
        ],
      );
      await reimport(slug, { mode: 'apply', document });
      assert.equal(
        (await reimport(slug, { document })).body.counts.new,
        0,
        'an applied import marks the operation as known',
      );
    });

    it('[imp 5] lists the edits that differ from the document, and applies only the planned document', async () => {
      const slug = await importServer();
      await edit(slug, 'get_pet', { title: 'A pet', description: 'Mine, and long enough to say something.' });
      const document = createDocument({ '/pets/{id}': pet({ summary: 'Theirs, which is new' }), '/pets': list() });
      const { edits, counts, conflicts, document_hash: hash } = (await reimport(slug, { document })).body;
      assert.deepEqual([counts.edits, conflicts.length], [1, 1], JSON.stringify(edits));
      assert.deepEqual(edits[0]?.fields, [{ path: 'title', after: 'A pet' }]);
      const takeAll = { document, take: ['*'], expected_document: hash };
      assert.equal((await reimport(slug, { ...takeAll, mode: 'apply', document: firstDocument })).status, 409);
      const applied = await reimport(slug, { ...takeAll, mode: 'apply' });
      assert.equal(applied.body.changed_server?.server.version, 3, applied.text);
      const [stays] = (await reimport(slug, { document })).body.edits;
      assert.deepEqual(stays?.fields, [{ path: 'title', after: 'A pet' }]);
    });

    it('[imp 5] creates one version, and restoring a version also restores its import base', async () => {
      const slug = await importServer();
      const document = createDocument({ '/pets/{id}': pet({ summary: 'Theirs, which is new' }), '/pets': list() });
      await reimport(slug, { mode: 'apply', document });
      assert.equal((await sendRest('POST', `/servers/${slug}/versions/1/restore`)).status, 200);
      assert.equal((await getTool(slug, 'get_pet'))?.description, 'Get one pet by its id');
      const { body } = await reimport(slug, { document });
      assert.deepEqual(
        [body.counts.changed, body.counts.conflicts],
        [1, 0],
        'the restored text does not count as an edit',
      );
    });

    it('[imp 5] stores no version when the document is unchanged', async () => {
      const slug = await importServer();
      await edit(slug, 'get_pet', { title: 'A pet' });
      const { body } = await reimport(slug, { mode: 'apply', document: firstDocument });
      assert.deepEqual([body.same_document, body.changed_server], [true, undefined]);
      assert.equal(((await sendRest('GET', `/servers/${slug}`)).body.server as Json).version, 2);
    });

    it('[imp 5] rejects servers that were not imported, and documents that cannot be read', async () => {
      await toolhost.createServer({ name: 'By hand', slug: `by-hand-${engine}`, tools: [] });
      assert.match((await reimport(`by-hand-${engine}`, { document: firstDocument })).text, /was not imported/);
      const slug = await importServer();
      assert.equal((await reimport(slug, {})).status, 400);
      assert.equal((await reimport(slug, { document: '{}' })).status, 400);
      assert.equal((await reimport(slug, { mode: 'apply', document: firstDocument, expected_version: 7 })).status, 200);
      const changed = createDocument({ '/pets': list({ summary: 'Changed once more' }) });
      assert.equal((await reimport(slug, { mode: 'apply', document: changed, expected_version: 7 })).status, 409);
    });

    it('[imp 5] returns 404 to callers of another workspace', async () => {
      const slug = await importServer();
      const foreignKey = await toolhost.createKey({ workspace: 'strangers' });
      const reply = await toolhost.rest('POST', `/servers/${slug}/import`, {
        key: foreignKey,
        body: { document: firstDocument },
      });
      assert.equal(reply.status, 404);
    });
  });
}
