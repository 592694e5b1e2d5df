import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { importCase, startImports } from '../support/import/import-service.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Returns the schema of an argument, in either form of `input_schema`. */
function getArgument(tool: Json | undefined, name: string): Json {
  const schema = (tool?.input_schema ?? {}) as Json;
  return ((schema.type === 'object' ? schema.properties : schema) as Record<string, Json>)[name] ?? assert.fail(name);
}

describe('import of a collection', () => {
  const imports = useFixture(startImports);

  const outcomes = ({ report }: { report: { outcome: string }[] }) => report.map(({ outcome }) => outcome);

  it('[imp 1] reads a collection as the Postman API returns it', async () => {
    const imported = await imports.importDocument(importCase('collections/answer-of-the-postman-api.json'));
    assert.equal((await imported.callTool('get_user', { user_id: 5 })).url, '/users/5');
  });

  it('[imp 2] turns a path placeholder in any spelling into an argument, and never sends it literally', async () => {
    const invoice = await imports.importDocument(importCase('collections/braces-inside-a-segment.postman.json'));
    assert.equal((await invoice.callTool('invoice_as_json', { invoice: 'v' })).url, '/invoices/v.json');
    const shop = await imports.importDocument(importCase('collections/placeholders.curl.txt'));
    const args = { shop_id: 'a', order_id: 'b', since: '2026-01-31' };
    assert.equal((await shop.callTool('get_shop_order', args)).url, '/shops/a/orders/b?since=2026-01-31');
    const spellings = [
      ...['{id}', '{{id}}', '{{ id }}', '<id>', '\u0024{id}', ':id', '%7Bid%7D', '%7B%7Bid%7D%7D', '%3Cid%3E'],
    ];
    for (const spelling of spellings) {
      const imported = await imports.importDocument(`curl 'https://a.example.com/things/${spelling}'`);
      assert.equal((await imported.callTool('get_thing', { id: 'x' })).url, '/things/x', spelling);
    }
    const odd = await imports.importDocument("curl https://a.example.com/ok; curl 'https://a.example.com/a/{b'");
    assert.deepEqual(
      odd.report.map(({ outcome, notes }) => [outcome, ...notes]),
      [['whole'], ['skipped', 'the path segment "{b", whose brackets contain no parameter name']],
    );
  });

  it('[imp 2] creates one tool per action when a nested body field names the action', async () => {
    const imported = await imports.importDocument(importCase('collections/nested-action.postman.json'));
    assert.deepEqual(imported.names, ['pay_10_eur', 'abort', 'print']);
    assert.deepEqual(outcomes(imported), ['whole', 'whole', 'whole']);
    const till = { Head: { Category: 'Abort', Id: '7' }, AbortRequest: { Reason: 'wrong' } };
    assert.deepEqual(JSON.parse((await imported.callTool('abort', { Till: till })).body.toString()), { Till: till });
  });

  it('[imp 2] creates separate tools for bodies that share less than half of their fields', async () => {
    const post = (name: string, body: object) => ({
      name,
      request: { method: 'POST', url: 'https://a.example.com/run', body: { mode: 'raw', raw: JSON.stringify(body) } },
    });
    const item = [
      post('Book a room', { id: 1, room: 'a', from: '2026-01-01' }),
      post('Book a room with a note', { id: 1, room: 'a', note: 'quiet' }),
      post('Charge a card', { id: 1, card: 'x', amount: 5, currency: 'EUR' }),
    ];
    const imported = await imports.importDocument(JSON.stringify({ info: { name: 'Calls' }, item }));
    assert.deepEqual(imported.names, ['book_a_room', 'charge_a_card']);
    const body = { id: 2, room: 'b', note: 'n' };
    assert.deepEqual(JSON.parse((await imported.callTool('book_a_room', body)).body.toString()), body);
  });

  it('[imp 2] sends the content type of the request, and parses JSON that contains placeholders', async () => {
    const bulk = await imports.importDocument(importCase('collections/bulk.curl.txt'));
    const lines = '{"index":{"_index":"b"}}\n{"f":2}\n';
    const sent = await bulk.callTool('create_bulk', { body: lines });
    assert.deepEqual([sent.body.toString(), sent.headers['content-type']], [lines, 'application/x-ndjson']);
    const typed = await imports.importDocument(
      `curl https://a.example.com/log -H 'Content-Type: text/plain' -d '{"a":1}'`,
    );
    assert.equal((await typed.callTool('create_log', { body: '{"a":2}' })).headers['content-type'], 'text/plain');
    const item = await imports.importDocument(importCase('collections/random-number.postman.json'));
    const added = await item.callTool('add_item', { name: 'word', count: 7 });
    assert.deepEqual(JSON.parse(added.body.toString()), { name: 'word', count: 7 });
    assert.equal(added.headers['content-type'], 'application/json');
    const amazon = await imports.importDocument(
      `curl https://a.example.com/ -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Target: Db.List' -d '{"Limit":1}'`,
    );
    const listed = await amazon.callTool('list', { Limit: 3 });
    assert.deepEqual(
      [listed.body.toString(), listed.headers['content-type']],
      ['{"Limit":3}', 'application/x-amz-json-1.0'],
    );
    const form = await imports.importDocument(importCase('collections/form-as-text.har.json'));
    assert.equal(
      (await form.callTool('create_login', { area: 'south', page: 3 })).body.toString(),
      'area=south&page=3',
    );
  });

  it('[imp 2] keeps descriptions, and shows known variable values as examples', async () => {
    const { config } = await imports.importDocument(importCase('collections/descriptions.postman.json'));
    assert.equal(getArgument(config.tools[0], 'id').description, 'Number of the order. Example: 42');
    assert.equal(getArgument(config.tools[0], 'part').description, 'What to add: lines or notes. Example: lines');
    const field = { key: 'size', value: '{{usual}}', description: { content: 'Size in cm' } };
    const request = {
      method: 'POST',
      url: 'https://a.example.com/{{version}}/parcels/{{owner}}',
      header: [{ key: 'X-Mode', value: '{{mode}}', description: 'How it is sent' }],
      body: { mode: 'urlencoded', urlencoded: [field, { key: 'pin', value: '{{accessToken}}' }] },
    };
    const variable = Object.entries({ version: 'v2', usual: '30', mode: 'fast', accessToken: 'zq-1' });
    const parcels = await imports.importDocument(
      JSON.stringify({
        info: { name: 'Parcels' },
        variable: variable.map(([key, value]) => ({ key, value })),
        item: [{ name: 'Send a parcel', request }],
      }),
    );
    const [tool] = parcels.config.tools;
    assert.equal(getArgument(tool, 'size').description, 'Size in cm. Example: 30');
    assert.equal(getArgument(tool, 'X-Mode').description, 'How it is sent. Example: fast');
    assert.equal(getArgument(tool, 'version').description, 'Example: v2');
    assert.doesNotMatch(JSON.stringify(parcels.config), /zq-1/);
  });

  it('[imp 2] sends a User-Agent that the author wrote, but not the one of the exporting program', async () => {
    const authored = await imports.importDocument("curl https://a.example.com/items -A 'shop-sync (ops@example.com)'");
    assert.equal((await authored.callTool('list_items')).headers['user-agent'], 'shop-sync (ops@example.com)');
    const generated = await imports.importDocument("curl https://a.example.com/items -H 'User-Agent: insomnia/11.2.0'");
    assert.deepEqual(generated.config.tools[0]?.headers ?? {}, {});
  });

  it('[imp 2] sends headers that the author wrote, and only the application headers of a browser request', async () => {
    const imported = await imports.importDocument(importCase('collections/headers-of-the-author.postman.json'));
    const sent = await imported.callTool('change_order', { id: '5', state: 'sent', 'If-Match': '"e1"' });
    const names = ['if-match', 'x-requested-with', 'accept-version'];
    assert.deepEqual(
      names.map((name) => sent.headers[name]),
      ['"e1"', 'api', 'v2'],
    );
    const headers = {
      'User-Agent': 'Mozilla/5.0',
      Referer: 'https://a.example.com/',
      'Accept-Language': 'de',
      'sec-fetch-mode': 'cors',
      'If-None-Match': '"e2"',
      'X-Requested-With': 'XMLHttpRequest',
    };
    const pairs = Object.entries(headers).map(([name, value]) => ({ name, value }));
    const request = { method: 'GET', url: 'https://a.example.com/api/list', headers: pairs };
    const recording = { log: { entries: [{ request, response: { content: { mimeType: 'application/json' } } }] } };
    const copied = `curl https://a.example.com/api/list ${Object.entries(headers)
      .map(([name, value]) => `-H '${name}: ${value}'`)
      .join(' ')}`;
    for (const document of [JSON.stringify(recording), copied]) {
      const { config } = await imports.importDocument(document);
      assert.deepEqual(config.tools[0]?.headers, { 'X-Requested-With': 'XMLHttpRequest' });
      assert.doesNotMatch(JSON.stringify(config.tools), /If-None-Match|Mozilla|Referer/);
    }
  });
});
