import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planDocument } from '../support/import/import-plans.ts';
import { type Imported, importCase, startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const format = (name: string) => importCase(`formats/${name}`);

describe('import of further request formats', () => {
  const imports = useFixture(startImports);

  /** Imports a text, and requires that every request becomes a whole tool and that no credential is stored. */
  async function importWhole(text: string): Promise<Imported> {
    const imported = await imports.importDocument(text);
    for (const { operation, outcome, notes } of imported.report)
      assert.deepEqual([outcome, notes], ['whole', []], operation);
    assert.doesNotMatch(JSON.stringify([imported.config, imported.report, imported.findings]), /zq-\d/);
    return imported;
  }

  async function callTool(imported: Imported, tool: string, args: Json = {}) {
    const { method, url, headers, body: bytes } = await imported.callTool(tool, args);
    const body = bytes.toString();
    return { request: `${method} ${url}`, headers, body, json: () => JSON.parse(body) as Json };
  }

  it('[imp 1] imports fetch calls as Chrome, Firefox, and Node copy them, without the headers that the browser adds', async () => {
    const chrome = await importWhole(format('chrome.fetch.txt'));
    assert.deepEqual(chrome.names, ['create_order', 'get_order']);
    const order = { customer: { name: 'ann' }, count: 3 };
    const added = await callTool(chrome, 'create_order', { status: 'new', page: 1, ...order });
    assert.equal(added.request, 'POST /api/orders?status=new&page=1');
    assert.deepEqual(added.json(), order);
    assert.equal(added.headers['content-type'], 'application/vnd.shop.order+json;charset=utf-8');
    assert.deepEqual(chrome.config.tools[0]?.headers, {
      'Content-Type': 'application/vnd.shop.order+json;charset=utf-8',
      'x-shop-version': '3',
    });
    assert.deepEqual((chrome.config.authentication as Json).type, 'Bearer');
    assert.equal((await callTool(chrome, 'get_order', { order_id: 18 })).request, 'GET /api/orders/18');
    const firefox = await importWhole(format('firefox.fetch.txt'));
    assert.equal((await callTool(firefox, 'create_search', { words: 'hat', limit: 2 })).body, 'words=hat&limit=2');
  });

  it('[imp 1] imports fetch calls of a script with templates, concatenation, JSON.stringify, and unknown values', async () => {
    const imported = await importWhole(format('script.fetch.txt'));
    assert.deepEqual(imported.names, ['list_project_tasks', 'replace_project', 'create_upload', 'create_login']);
    const [list, save, upload, login] = imported.names as [string, string, string, string];
    const listed = await callTool(imported, list, { id: 'a', part: 'b' });
    assert.deepEqual([listed.request, listed.headers['x-mode']], ['GET /api/projects/a/tasks?part=b', 'fast']);
    const task = { title: 'x', tags: ['y'], owner: 5, count: 2, due: '2026-01-31', note: 'z' };
    const saved = await callTool(imported, save, { id: 'a', ...task });
    assert.deepEqual([saved.request, saved.json()], ['PUT /api/projects/a', task]);
    const file = { title: 'A', width: 9, doc: 'aGVsbG8=', doc_name: 'b.pdf' };
    const uploaded = await callTool(imported, upload, file);
    assert.match(uploaded.body, /name="doc"; filename="b\.pdf"[\s\S]*\r\n\r\nhello\r\n/);
    assert.equal((await callTool(imported, login, { user: 'ann', pin: '1' })).body, 'user=ann&pin=1');
  });

  it('[imp 1] imports Insomnia 4 exports with folders, nested environments, disabled credentials, and tags', async () => {
    const imported = await importWhole(format('insomnia-4.json'));
    assert.deepEqual(imported.names, ['list_orders', 'list_customers', 'cancel_an_order', 'things']);
    assert.deepEqual(pluck(imported.findings, 'message'), ['is not an HTTP request; left out']);
    assert.equal((await callTool(imported, 'list_customers', { sort: 'age' })).request, 'GET /customers?sort=age');
    const canceled = await callTool(imported, 'cancel_an_order', { id: 8, reason: 'lost' });
    assert.deepEqual([canceled.request, canceled.body], ['POST /orders/8/cancel', 'reason=lost']);
    assert.deepEqual((await callTool(imported, 'things', { variables: { first: 5 } })).json().variables, { first: 5 });
    const plan = planDocument(format('insomnia-4.json'));
    assert.equal(plan.config?.base_url, 'https://shop.example.org');
    assert.match(JSON.stringify(plan.config), /By what to sort\. Example: name/);
    assert.match(JSON.stringify(plan.config?.authentication), /"header":"apikey"/);
  });

  it('[imp 1] imports Insomnia 5 exports with inherited folder settings, and asks for values that environments disagree on', async () => {
    const imported = await importWhole(format('insomnia-5.yaml'));
    assert.deepEqual(imported.names, ['get_an_order', 'add_an_order', 'upload']);
    const got = await callTool(imported, 'get_an_order', { 'order.id': 7, part: 'notes', limit: 2 });
    assert.deepEqual([got.request, got.headers['x-shop']], ['GET /orders/7?part=notes&limit=2', '7']);
    const added = await callTool(imported, 'add_an_order', { owner: 'ann', count: 2 });
    assert.deepEqual([added.request, added.json()], ['POST /v1/orders', { owner: 'ann', count: 2 }]);
    assert.equal((await callTool(imported, 'upload', { name: 'b.png', file: 'aGVsbG8=' })).body, 'hello');
    const two = format('insomnia-5.yaml').replace('data: { count: 4 }', "data: {base_url: 'https://dev.shop.io'}");
    const [question] = planDocument(two).questions;
    assert.equal(question?.name, 'base_url');
    const values = pluck(question?.options ?? [], 'value');
    assert.deepEqual(values, ['https://api.example.com', 'https://dev.shop.io']);
    const { config } = planDocument(two, { include: ['*'], answers: { base_url: 'https://dev.shop.io' } });
    assert.equal(config?.base_url, 'https://dev.shop.io');
  });

  it('[imp 1] imports the OpenAPI document of an Insomnia design document', () => {
    const spec = 'openapi: 3.0.0\nservers: [{url: https://a.example.com}]\npaths: {/a: {get: {operationId: getA}}}';
    const list = JSON.parse(format('insomnia-4.json')) as { resources: Json[] };
    for (const resource of list.resources) if (resource._type === 'api_spec') resource.contents = spec;
    const contents = { openapi: '3.0.0', paths: { '/a': { get: {} } } };
    for (const document of [list, { type: 'spec.insomnia.rest/5.0', name: 'A', spec: { contents } }]) {
      const [only, ...others] = planDocument(document as Json).all;
      assert.deepEqual([only?.operation.path, others], ['/a', []]);
    }
  });

  it('[imp 1] imports concatenated Bruno .bru files with shared headers and credentials, and every kind of body', async () => {
    const imported = await importWhole(format('collection.bru'));
    assert.deepEqual(imported.names, ['add_order', 'upload', 'log_in', 'things', 'get_a_user']);
    assert.match(JSON.stringify(imported.findings), /has 1 scripts, which are left out/);
    const added = await callTool(imported, 'add_order', { name: 'a', count: 2 });
    assert.deepEqual([added.json(), added.headers['x-version']], [{ name: 'a', count: 2 }, '2']);
    const cat = { title: 'B', photo: 'aGVsbG8=', photo_name: 'c.png' };
    assert.match((await callTool(imported, 'upload', cat)).body, /name="photo"; filename="c\.png"/);
    assert.equal((await callTool(imported, 'log_in', { user: 'ann', note: 'x' })).body, 'user=ann&note=x');
    const got = await callTool(imported, 'get_a_user', { id: 7, x: 2, q: 'hat', limit: 5, 'X-Trace': 't' });
    assert.deepEqual([got.request, got.body, got.headers['x-trace']], ['GET /users/7?x=2&q=hat&limit=5', '', 't']);
    assert.match(JSON.stringify(imported.config), /One user with its addresses.*Example: 42.*Example: shoes/);
    assert.equal(planDocument(format('collection.bru')).config?.base_url, 'https://api.example.com');
  });

  it('[imp 1] imports a Bruno collection export and an OpenCollection document', async () => {
    const bruno = await importWhole(format('bruno.json'));
    assert.deepEqual(bruno.names, ['add_an_order', 'upload']);
    const added = await callTool(bruno, 'add_an_order', { shop: 'b', q: 'x', message: 'm', at: 'n' });
    assert.deepEqual([added.request, added.json()], ['POST /v1/orders/b?q=x', { message: 'm', at: 'n' }]);
    const headers = ['x-all', 'x-folder', 'x-off'].map((name) => added.headers[name]);
    assert.deepEqual(headers, ['2', '1.0', undefined]);
    assert.match(JSON.stringify(bruno.config), /Adds one order.*What to look for.*Of the picture/);
    const open = await importWhole(format('opencollection.yaml'));
    assert.deepEqual(open.names, ['get_an_order', 'add_an_order', 'log_in', 'things']);
    assert.equal((await callTool(open, 'get_an_order', { id: 7, part: 'x' })).request, 'GET /orders/7?part=x');
    assert.deepEqual((await callTool(open, 'add_an_order', { name: 'a', count: 1 })).json(), { name: 'a', count: 1 });
    assert.equal((await callTool(open, 'log_in', { user: 'ann' })).body, 'user=ann');
    assert.match(JSON.stringify(open.config), /Number of the order\. Example: 42/);
    const { variables } = (await callTool(open, 'things', { variables: { first: 1 } })).json();
    assert.ok(variables instanceof Object);
  });

  it('[imp 1] imports .http files of REST Client and JetBrains', async () => {
    const imported = await importWhole(format('requests.http'));
    const operations = 'POST /login,GET /v2/orders,PUT /files/{id},POST /form,POST /orders,POST /graphql#repository';
    assert.equal(pluck(imported.report, 'operation').join(), `${operations},GET /status`);
    assert.deepEqual(pluck(imported.findings, 'at'), ['line 77', 'document']);
    assert.equal(imported.names.join(), 'login,list_orders,replace_file,create_form,create_order,gql,raw');
    assert.equal((await callTool(imported, 'login', { user: 'ann', pin: 2 })).body, 'user=ann&pin=2');
    const filters = { status: 'new', page: 1, 'api-version': '2', 'X-Trace': 't' };
    const listed = await callTool(imported, 'list_orders', filters);
    assert.deepEqual([listed.request, listed.body], ['GET /v2/orders?status=new&page=1&api-version=2', '']);
    const replaced = await callTool(imported, 'replace_file', { id: 'a', file: 'aGVsbG8=' });
    assert.equal(replaced.headers['content-type'], 'image/png');
    const form = await callTool(imported, 'create_form', { title: 'x', data: 'e30=', data_name: 'd.json' });
    assert.match(form.body, /name="data"; filename="d\.json"[\s\S]*name="title"\r\n\r\nx\r\n/);
    const order = { name: 'a', at: 'b', count: 3 };
    assert.deepEqual((await callTool(imported, 'create_order', order)).json(), order);
    assert.deepEqual((await callTool(imported, 'gql', { variables: { name: 'z' } })).json().variables, { name: 'z' });
    const { config } = planDocument(format('requests.http'));
    assert.equal(config?.base_url, 'https://api.example.com');
    assert.match(JSON.stringify(config), /All orders of a shop/);
    const open = planDocument('@path = /v1\n\n### List\nGET {{host}}{{path}}/things\n');
    assert.deepEqual(
      pluck(
        open.questions.filter(({ required }) => required),
        'name',
      ),
      ['host'],
    );
  });
});
