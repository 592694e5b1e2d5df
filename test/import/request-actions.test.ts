import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startImports } from '../support/import/import-service.ts';
import { requestWriters } from '../support/import/request-formats.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('import of requests that share an address', () => {
  const imports = useFixture(startImports);

  /** Imports a document. `send` returns the request of a tool, and `post` its JSON body. */
  async function importDocument(document: string) {
    const { names, config, callTool: send } = await imports.importDocument(document);
    const post = async (tool: string, args: Json) => JSON.parse((await send(tool, args)).body.toString()) as unknown;
    return { names: names as string[], text: JSON.stringify(config), send, post };
  }

  const url = 'https://gates.example.com/api/index.php';
  const gates = [
    { method: 'GET', url: `${url}?m=list`, name: 'List gates' },
    { method: 'GET', url: `${url}?m=open&gate=north`, name: 'Open a gate' },
    { method: 'GET', url: `${url}?m=users`, name: 'List users' },
  ];

  it('[imp 2] creates one tool per action when the query names the action', async () => {
    for (const [format, write] of Object.entries(requestWriters)) {
      const { names, send } = await importDocument(write(gates));
      const expected = format === 'Postman' ? ['list_gates', 'open_a_gate', 'list_users'] : ['list', 'open', 'users'];
      assert.deepEqual(names, expected, format);
      const [list = '', open = ''] = expected;
      assert.equal((await send(list)).url, '/api/index.php?m=list', format);
      assert.equal((await send(open, { gate: 'south' })).url, '/api/index.php?m=open&gate=south', format);
    }
  });

  it('[imp 2] creates one tool per action when a form field, a JSON field, or several query parameters name it', async () => {
    const at = 'https://a.example.com';
    const requests = [
      { method: 'POST', url: `${at}/do.cgi`, form: { cmd: 'start', pump: '3' }, name: 'Start a pump' },
      { method: 'POST', url: `${at}/do.cgi`, form: { cmd: 'status' }, name: 'Status' },
      { method: 'POST', url: `${at}/events`, body: { type: 'click', x: 5 }, name: 'A click' },
      { method: 'POST', url: `${at}/events`, body: { type: 'view', page: 'home' }, name: 'A view' },
      { method: 'GET', url: `${at}/api?module=account&action=balance&address=0xa`, name: 'Balance' },
      { method: 'GET', url: `${at}/api?module=contract&action=getabi&address=0xa`, name: 'ABI' },
    ];
    for (const [format, write] of Object.entries(requestWriters)) {
      const { names, send, post } = await importDocument(write(requests));
      assert.equal(names.length, 6, `${format}: ${names}`);
      const [start = '', status = '', click = '', , balance = ''] = names;
      assert.equal((await send(start, { pump: 4 })).body.toString(), 'cmd=start&pump=4', format);
      assert.equal((await send(status)).body.toString(), 'cmd=status', format);
      assert.deepEqual(await post(click, { x: 7 }), { type: 'click', x: 7 }, format);
      const { searchParams } = new URL((await send(balance, { address: '0xb' })).url, at);
      const expected = { action: 'balance', module: 'account', address: '0xb' };
      assert.deepEqual(Object.fromEntries(searchParams), expected, format);
    }
  });

  it('[imp 2] creates one tool per GraphQL operation, JSON-RPC method, and SOAP action', async () => {
    const at = 'https://b.example.com';
    const query = 'query GetUser($id: ID!, $first: Int) { user(id: $id) { posts(first: $first) { title } } }';
    const soap = (name: string) =>
      `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header><Password>zq-1</Password></e:Header><e:Body><${name}><id>5</id></${name}></e:Body></e:Envelope>`;
    const xml = (name: string) => ({
      'Content-Type': 'text/xml; charset=utf-8',
      SOAPAction: `"http://b.example.com/${name}"`,
    });
    const rpc = (method: string, params: Json) => ({ jsonrpc: '2.0', id: 7, method, params });
    const post = { method: 'POST' };
    const requests = [
      { ...post, url: `${at}/graphql`, body: { query, variables: { id: '5' } } },
      { ...post, url: `${at}/graphql`, body: { query: 'mutation Drop { drop }', operationName: 'Drop' } },
      { ...post, url: `${at}/rpc`, body: rpc('user.get', { id: 5 }) },
      { ...post, url: `${at}/rpc`, body: rpc('user.get', { name: 'kim' }) },
      { ...post, url: `${at}/rpc`, body: rpc('user.drop', { id: 5 }) },
      { ...post, url: `${at}/service.asmx`, headers: xml('GetUser'), body: soap('GetUser') },
      { ...post, url: `${at}/service.asmx`, headers: xml('DropUser'), body: soap('DropUser') },
    ];
    for (const [format, write] of Object.entries(requestWriters)) {
      const { names, send, post, text } = await importDocument(write(requests));
      assert.deepEqual(names, ['get_user', 'drop', 'user_get', 'user_drop', names[4], 'drop_user'], format);
      const variables = { id: '9', first: 3 };
      assert.deepEqual(await post('get_user', { variables }), { query, variables }, format);
      const called = await post('user_get', { params: { name: 'ann' } });
      assert.deepEqual(called, { ...rpc('user.get', { name: 'ann' }), id: 1 }, format);
      const { headers, body } = await send('drop_user', { body: soap('DropUser') });
      assert.equal(headers.soapaction, '"http://b.example.com/DropUser"', format);
      assert.deepEqual([body.toString(), headers['content-type']], [soap('DropUser'), 'text/xml; charset=utf-8']);
      assert.match(text, /<DropUser><id>5<\/id>/);
      assert.doesNotMatch(text, /zq-1/);
    }
    const graphql = { query, variables: '{"id": {{user}}}' };
    const request = { method: 'POST', url: `${at}/graphql`, body: { mode: 'graphql', graphql } };
    const item = [{ name: 'A user', request }];
    const { post: sendUser } = await importDocument(JSON.stringify({ info: { name: 'Calls' }, item }));
    assert.deepEqual(await sendUser('a_user', { variables: { id: '9' } }), { query, variables: { id: '9' } });
  });

  it('[imp 2] creates a single tool with the inputs of all requests when no value names an action', async () => {
    const at = 'https://c.example.com/orders';
    const headers = { 'X-Region': 'eu' };
    const requests = [
      { method: 'POST', url: `${at}?status=open&page=2`, body: { name: 'kim', lines: [{ sku: 'a' }] }, headers },
      { method: 'POST', url: `${at}?status=closed&ids=1&ids=2`, body: { name: 'ann', lines: [{ count: 2 }], note: 5 } },
      { method: 'POST', url: at, body: { note: 'x' }, headers: { 'X-Region': 'us' } },
    ];
    for (const [format, write] of Object.entries(requestWriters)) {
      const { names, send, post: postOrder, text } = await importDocument(write(requests));
      assert.deepEqual(names, ['create_order'], format);
      const order = { name: 'bo', lines: [{ sku: 'b', count: 1 }], note: 'y' };
      const args = { status: 'new', page: 1, ids: [3, 4], 'X-Region': 'jp', ...order };
      const { url, headers: sentHeaders, body } = await send('create_order', args);
      assert.equal(url, '/orders?status=new&page=1&ids=3&ids=4', format);
      assert.equal(sentHeaders['x-region'], 'jp', format);
      assert.deepEqual(JSON.parse(body.toString()), order, format);
      assert.match(text, /For example open, closed/);
      assert.deepEqual(await postOrder('create_order', { note: 5 }), { note: 5 }, format);
    }
    const kinds = [
      { method: 'POST', url: at, body: { a: 1 } },
      { method: 'POST', url: at, form: { b: 'c' } },
    ];
    for (const write of Object.values(requestWriters))
      assert.equal((await importDocument(write(kinds))).names.length, 2);
  });

  it('[imp 1] reads every URL, every --next part, and every file of a curl command', async () => {
    const text = [
      "curl https://d.example.com/a https://d.example.com/b --url-query 'q=x&y' --next -T photo.png https://d.example.com/c",
      "curl https://d.example.com/d --data-urlencode 'text=a&b=c'",
      'curl https://d.example.com/e -d @order.json',
    ].join('\n');
    const { names, send } = await importDocument(text);
    assert.deepEqual(names, ['list_a', 'list_b', 'replace_c', 'create_d', 'create_e']);
    assert.equal((await send('list_b', { q: '1' })).url, '/b?q=1');
    for (const [tool, args, body] of [
      ['replace_c', { file: 'aGVsbG8=' }, 'hello'],
      ['create_d', { text: 'z' }, 'text=z'],
      ['create_e', { body: [1] }, '[1]'],
    ] as const)
      assert.equal((await send(tool, args)).body.toString(), body);
  });
});
