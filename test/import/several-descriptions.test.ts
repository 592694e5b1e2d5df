import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { openApi } from '../support/import/import-plans.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

type Tool = Json & { name: string; url: string; credential?: string; imported_from?: string; disabled?: boolean };
type Imported = { id: string; prefix?: string; document?: string };
type Config = Json & { tools: Tool[]; imported: Imported[]; credentials: Json; variables: Json };

const get = (operationId: string, summary: string) => ({ get: { operationId, summary } });
const bearer = {
  components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  security: [{ token: [] }],
};

for (const engine of engines) {
  describe(`several descriptions in one server on ${engine}`, () => {
    const upstream = useFixture(() => startRecordingUpstream());
    const mail = useFixture(() => startRecordingUpstream());
    const running = useFixture(() => startToolhostOnEngine(engine, { egressPorts: [upstream.port, mail.port] }));
    let key: string;
    let count = 0;
    before(async () => {
      key = await running.toolhost.createKey();
    });

    const send = async (method: string, path: string, body?: Json, status = 200): Promise<Reply> => {
      const reply = await running.toolhost.rest(method, path, { key, ...(body && { body }) });
      assert.equal(reply.status, status, reply.text);
      return reply;
    };
    const getConfig = async (slug: string) => (await send('GET', `/servers/${slug}`)).body.config as Config;
    const getTool = async (slug: string, name: string) =>
      (await getConfig(slug)).tools.find((tool) => tool.name === name) ?? assert.fail(name);
    const shopDocument = (paths: Json = { '/items': get('listItems', 'List the items of the shop') }) =>
      JSON.stringify(openApi(paths, { servers: [{ url: upstream.url }], ...bearer }));
    const mailDocument = (paths: Json = { '/items': get('listItems', 'List the messages') }, more: Json = bearer) => {
      const variables = { version: { default: 'v1' } };
      return JSON.stringify(openApi(paths, { servers: [{ url: `${mail.url}/{version}`, variables }], ...more }));
    };
    /** Imports the shop. Returns the slug of the server. */
    const importShop = async () => {
      const slug = `office-${engine}-${++count}`;
      await send('POST', '/import', { mode: 'create', slug, document: shopDocument(), include: ['*'] });
      return slug;
    };
    const addMail = (slug: string, more: Json = {}, status = 200) =>
      send(
        'POST',
        `/servers/${slug}/imports`,
        { prefix: 'mail', mode: 'apply', document: mailDocument(), include: ['*'], ...more },
        status,
      );
    const reimport = (slug: string, body: Json, status = 200) =>
      send('POST', `/servers/${slug}/import`, { mode: 'apply', ...body }, status);

    it('adds tools, credential, variables, and secrets with the prefix, and changes nothing else', async () => {
      const slug = await importShop();
      const {
        tools: [shopTool],
        ...shop
      } = await getConfig(slug);
      const { body } = await addMail(slug);
      assert.deepEqual(
        (body.secrets as { name: string }[]).map(({ name }) => name),
        ['MAIL_TOKEN'],
      );
      const { tools, imported, credentials, variables, ...rest } = await getConfig(slug);
      const { imported: firstImport, ...before } = shop;
      assert.deepEqual(rest, before);
      assert.deepEqual(tools[0], shopTool);
      assert.deepEqual(
        imported.map(({ prefix }) => prefix),
        [undefined, 'mail'],
      );
      assert.deepEqual(imported[0], (firstImport as Imported[])[0]);
      const mailTool = tools[1] as Tool;
      assert.deepEqual(
        [mailTool.name, mailTool.url, mailTool.credential, mailTool.imported_from],
        ['mail_list_items', `${mail.url}/{{mail_version}}/items`, 'mail', 'mail: GET /items'],
      );
      assert.deepEqual(credentials, { mail: { type: 'Bearer', token: '{{MAIL_TOKEN}}' } });
      assert.deepEqual(Object.keys(variables), ['mail_version']);
    });

    it('sends each API only its own credential', async () => {
      const slug = await importShop();
      await addMail(slug);
      for (const [name, value] of [
        ['TOKEN', 'shop-token'],
        ['MAIL_TOKEN', 'mail-token'],
      ])
        await send('PUT', `/servers/${slug}/secrets/${name}`, { value });
      await running.toolhost.callTool(slug, key, 'list_items');
      await running.toolhost.callTool(slug, key, 'mail_list_items');
      assert.deepEqual(
        upstream.take().map(({ headers }) => headers.authorization),
        ['Bearer shop-token'],
      );
      const requests = mail.take();
      assert.deepEqual(
        requests.map(({ url, headers }) => [url, headers.authorization]),
        [['/v1/items', 'Bearer mail-token']],
      );
    });

    it('sends no credential to an added API that needs none', async () => {
      const slug = await importShop();
      await addMail(slug, { document: mailDocument(undefined, {}) });
      assert.equal((await getTool(slug, 'mail_list_items')).credential, 'none');
    });

    it('re-imports only the description that the prefix names, and keeps edits', async () => {
      const slug = await importShop();
      await addMail(slug);
      await send('PATCH', `/servers/${slug}/tools/mail_list_items`, { title: 'Inbox' });
      const paths = {
        '/items': get('listItems', 'List all the messages'),
        '/folders': get('listFolders', 'List the folders'),
      };
      const document = mailDocument(paths);
      const refused = await reimport(slug, { document }, 400);
      assert.match(
        refused.text,
        /prefix: required, because the server has several imports; allowed: \\"\\", \\"mail\\"/,
      );
      const before = await getConfig(slug);
      const { body } = await reimport(slug, { prefix: 'mail', document, add: ['*'] });
      assert.deepEqual([body.added, body.gone], [['mail_list_folders'], []]);
      const after = await getConfig(slug);
      assert.deepEqual(after.tools[0], before.tools[0]);
      assert.deepEqual(
        after.tools.map(({ imported_from: from }) => from),
        ['GET /items', 'mail: GET /items', 'mail: GET /folders'],
      );
      const [, inbox, folders] = after.tools;
      assert.deepEqual([inbox?.title, inbox?.description], ['Inbox', 'List all the messages']);
      assert.equal(folders?.credential, 'mail');
      assert.equal(after.imported[0]?.id, before.imported[0]?.id);
      assert.notEqual(after.imported[1]?.id, before.imported[1]?.id);
      assert.equal((await reimport(slug, { prefix: 'mail', document })).body.unchanged, true);
    });

    it('re-imports the first description without touching the others', async () => {
      const slug = await importShop();
      await addMail(slug);
      const { body } = await reimport(slug, {
        prefix: '',
        document: shopDocument({ '/orders': get('listOrders', 'List orders') }),
      });
      assert.deepEqual(body.gone, ['list_items']);
      assert.equal((await getTool(slug, 'mail_list_items')).disabled ?? false, false);
      assert.deepEqual(Object.keys((await getConfig(slug)).variables), ['mail_version']);
    });

    it('keeps the import of a description that is older than five imports of another one', async () => {
      const slug = await importShop();
      await addMail(slug);
      for (let round = 0; round < 6; round++)
        await reimport(slug, {
          prefix: 'mail',
          document: mailDocument({ '/items': get('listItems', `Round ${round} of messages`) }),
        });
      await send('PATCH', `/servers/${slug}/tools/list_items`, { description: 'An edit of the first description.' });
      const { body } = await reimport(slug, { prefix: '', document: shopDocument() });
      assert.deepEqual(body.conflicts, []);
      assert.equal((body.edits as Json[]).length, 1);
    });

    it('adds a description with the tool importApi of the management server', async () => {
      const slug = await importShop();
      const args = { mode: 'create', document: mailDocument(), include: ['*'], into: slug };
      const use = (input: Json) => running.toolhost.callTool('manage', key, 'importApi', input);
      assert.match(JSON.stringify(await use(args)), /prefix: required/);
      assert.match(JSON.stringify(await use({ ...args, prefix: 'mail', slug: 'x' })), /cannot be combined with into/);
      assert.match(JSON.stringify(await use({ ...args, prefix: 'mail' })), /Changed the server .*Imported 1 tools/s);
      assert.equal((await getTool(slug, 'mail_list_items')).credential, 'mail');
    });

    it('rejects a prefix that is taken or invalid, a tool name that exists, and a second login', async () => {
      const slug = await importShop();
      await addMail(slug);
      assert.match((await addMail(slug, {}, 400)).text, /is the prefix of another import/);
      for (const prefix of ['Mail', 'a-b', '', 'a'.repeat(16)])
        assert.match((await addMail(slug, { prefix }, 400)).text, /prefix/);
      const tool = { name: 'cal_list_items', description: 'Made by hand.', method: 'GET', url: `${upstream.url}/x` };
      await send('POST', `/servers/${slug}/tools`, tool);
      assert.match((await addMail(slug, { prefix: 'cal' }, 400)).text, /already has a tool \\"cal_list_items\\"/);
      const flows = {
        authorizationCode: { authorizationUrl: 'https://a.example/a', tokenUrl: 'https://a.example/t', scopes: {} },
      };
      const login = {
        components: { securitySchemes: { login: { type: 'oauth2', flows } } },
        security: [{ login: [] }],
      };
      const answers = { client_id: 'c', client_secret: 's' };
      const refused = await addMail(slug, { prefix: 'log', document: mailDocument(undefined, login), answers }, 400);
      assert.match(refused.text, /a server has one login/);
    });

    it('plans without storing anything, and adds to a server that was written by hand', async () => {
      const slug = `hand-${engine}`;
      const tools = [{ name: 'ping', description: 'Pings the shop.', method: 'GET', url: `${upstream.url}/ping` }];
      await running.toolhost.createServer({ name: 'Hand', slug, tools });
      const { body } = await addMail(slug, { mode: 'plan', report: 'chosen' });
      assert.deepEqual(
        (body.report as Json[]).map(({ tool }) => tool),
        ['mail_list_items'],
      );
      assert.equal((await getConfig(slug)).imported, undefined);
      await addMail(slug);
      assert.deepEqual(
        (await getConfig(slug)).tools.map(({ name }) => name),
        ['ping', 'mail_list_items'],
      );
      const { body: again } = await reimport(slug, { document: mailDocument() });
      assert.equal(again.unchanged, true);
    });

    it('compares every description that has a URL, and names the one that cannot be read', async () => {
      const shopPaths = { '/items': get('listItems', 'List the items of the shop') };
      upstream.on('GET /openapi.json', () => ({ body: JSON.parse(shopDocument(shopPaths)) as Json }));
      mail.on('GET /openapi.json', () => ({ body: JSON.parse(mailDocument()) as Json }));
      const slug = `watched-${engine}`;
      const url = (of: { url: string }) => `${of.url}/openapi.json`;
      await send('POST', '/import', { mode: 'create', slug, url: url(upstream), include: ['*'] });
      await addMail(slug, { document: undefined, url: url(mail) });
      const check = async () => (await send('POST', `/servers/${slug}/import/compare`)).body.imported as Json;
      assert.equal((await check()).changed, false);
      const changed = get('listItems', 'List other things entirely');
      upstream.on('GET /openapi.json', () => ({ body: JSON.parse(shopDocument({ '/items': changed })) as Json }));
      mail.on('GET /openapi.json', () => ({ body: JSON.parse(mailDocument({ '/items': changed })) as Json }));
      assert.deepEqual((await check()).counts, { changed: 2, conflicts: 0, new: 0, gone: 0, server: 0 });
      mail.on('GET /openapi.json', () => ({ status: 500 }));
      assert.match(String((await check()).error), /^mail: .*500/);
    });
  });
}
