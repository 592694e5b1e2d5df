import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getValidConfig, planDocument } from '../../../../test/support/import/import-plans.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import { object } from '../../../../test/support/schemas.ts';

const planAll = (document: object | string, choices = {}) =>
  planDocument(typeof document === 'string' ? document : JSON.stringify(document), { include: ['*'], ...choices });
const describeConfig = (document: object | string) => {
  const { base_url: base, authentication, tools } = getValidConfig(planAll(document));
  const described = tools.map(({ name, method, url, headers, body, input_schema }) => ({
    name,
    request: `${method} ${url}`,
    ...(headers && { headers }),
    ...(body && { body }),
    inputs: Object.keys((input_schema.properties ?? input_schema) as object),
  }));
  return { base, authentication, tools: described };
};
const toEntries = (values: object) => Object.entries(values).map(([name, value]) => ({ name, value }));
const toPairs = (values: object) => Object.entries(values).map(([key, value]) => ({ key, value }));

/** Returns a browser recording of these requests. */
const record = (...requests: object[]) => {
  const entries = requests.map((request) => ({ request, response: { content: { mimeType: 'application/json' } } }));
  return { log: { version: '1.2', entries } };
};

describe('import of recorded requests', () => {
  it('[imp 1] imports curl commands with quotes, line continuations, and every option form, and stores no credential', () => {
    const text = `
# two commands
$ curl -sSL -XPOST 'https://api.example.com/v1/orders?dry_run=true' \\
  -H "Authorization: Bearer sk-live-secret" -H 'X-Api-Version: 2026-01' --header=Accept:application/json \\
  --data-raw $'{"name":"it\\'s","lines":[{"sku":"a","count":2}]}'
curl "https://api.example.com/v1/orders/8123/items?limit=10&api_key=abc" -u user:pass --compressed | jq .
curl https://api.example.com/v1/files -F file=@photo.png -F 'title=A photo'
curl -G api.example.com/v1/search -d q=shoes --data-urlencode 'page=2' ; curl -I https://api.example.com/health
`;
    const { base, tools } = describeConfig(text);
    assert.equal(base, 'https://api.example.com');
    const [first, ...others] = tools;
    assert.deepEqual(first, {
      name: 'create_order',
      request: 'POST /v1/orders',
      headers: { 'X-Api-Version': '2026-01' },
      inputs: ['dry_run', 'name', 'lines'],
    });
    const inputs = pluck(others, 'inputs');
    assert.deepEqual(inputs, [['order_id', 'limit'], ['file', 'file_name', 'title'], ['q', 'page'], []]);
    const plan = planAll(text);
    const outcomes = plan.all.map(({ operation, outcome }) => `${operation.method} ${operation.path} ${outcome}`);
    assert.deepEqual(outcomes, [
      'POST /v1/orders whole',
      'GET /v1/orders/{order_id}/items whole',
      'POST /v1/files whole',
      'GET /v1/search whole',
      'HEAD /health whole',
    ]);
    assert.doesNotMatch(JSON.stringify(plan), /sk-live-secret|user:pass|abc/);
  });

  it('[imp 1] imports "Copy as cURL (cmd)" commands of current and older browsers on Windows', () => {
    const today = String.raw`curl ^"https://shop.example.com/orders?status=open^&limit=20^&q=a^%^20b^" ^
  -H ^"Accept: application/json^" ^
  -H ^"Authorization: Bearer xyz^" &
curl --request PUT ^"https://shop.example.com/notes^" ^
  -H ^"Content-Type: application/json^" ^
  --data-raw ^"^{^\^"text^\^":^\^"5 ^$ ^& ^^ more^\^",^\^"path^\^":^\^"a^\^\b^\^"^}^"`;
    const before = String.raw`curl "https://shop.example.com/orders?status=open&limit=20&q=a%20b" ^
  -H "Authorization: Bearer xyz" --compressed
curl -X PUT "https://shop.example.com/notes" -H "Content-Type: application/json" ^
  --data-raw "{\"text\":\"5 $\",\"path\":\"a\\b\"}"`;
    for (const text of [today, today.replaceAll('\n', '\r\n'), before]) {
      const plan = planAll(text, { answers: { credential: 'none' } });
      const [first, second] = pluck(plan.all, 'operation');
      assert.deepEqual([first?.method, first?.path, second?.method, second?.path], ['GET', '/orders', 'PUT', '/notes']);
      const examples = first?.inputs.map(({ name, schema }) => [name, (schema as { example: unknown }).example]);
      assert.deepEqual(Object.fromEntries(examples ?? []), { status: 'open', limit: 20, q: 'a b' });
      assert.deepEqual([...(first?.security[0]?.keys() ?? [])], ['bearer']);
      const toSchema = (example: string) => ({ type: 'string', example });
      const properties = { text: toSchema(text === before ? '5 $' : '5 $ & ^ more'), path: toSchema('a\\b') };
      assert.deepEqual(second?.body?.contents[0]?.schema, object(properties));
      assert.doesNotMatch(JSON.stringify(plan), /xyz/);
    }
  });

  it('[imp 1] imports a Postman collection with folders, variables, inherited credentials, and every kind of body', () => {
    const order = {
      method: 'GET',
      url: { raw: '{{baseUrl}}/orders/:orderId?expand={{expand}}', query: toPairs({ expand: '{{expand}}' }) },
      description: 'One order of the shop with its lines.',
    };
    const json = {
      mode: 'raw',
      raw: '{"customer": {{customer}}, "note": "hi"}',
      options: { raw: { language: 'json' } },
    };
    const added = { method: 'POST', url: '{{baseUrl}}/orders', header: toPairs({ 'X-Trace': '' }), body: json };
    const formdata = [{ key: 'photo', type: 'file' }, ...toPairs({ alt: 'A cat' })];
    const photo = { method: 'PUT', url: '{{baseUrl}}/photos/{{id}}', body: { mode: 'formdata', formdata } };
    const urlencoded = { mode: 'urlencoded', urlencoded: toPairs({ user: 'me' }) };
    const folder = [
      { name: 'Get an order', request: order },
      { name: 'Add an order', request: added },
    ];
    const collection = {
      info: { name: 'Shop', schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
      auth: { type: 'apikey', apikey: toPairs({ key: 'X-Shop', value: 'secret-value', in: 'header' }) },
      variable: toPairs({ baseUrl: 'https://shop.example.com/api' }),
      item: [
        { name: 'Orders', item: folder },
        { name: 'Upload a photo', request: photo },
        { name: 'Log in', request: { method: 'POST', url: '{{baseUrl}}/login', body: urlencoded } },
      ],
    };
    const photoInputs = ['id', 'photo', 'photo_name', 'alt'];
    assert.deepEqual(describeConfig(collection), {
      base: 'https://shop.example.com',
      authentication: { type: 'ApiKey', header: 'X-Shop', token: '{{X_SHOP_KEY}}' },
      tools: [
        { name: 'get_an_order', request: 'GET /api/orders/:orderId', inputs: ['orderId', 'expand'] },
        { name: 'add_an_order', request: 'POST /api/orders', inputs: ['X-Trace', 'customer', 'note'] },
        { name: 'upload_a_photo', request: 'PUT /api/photos/:id', body: 'multipart', inputs: photoInputs },
        { name: 'log_in', request: 'POST /api/login', body: 'form', inputs: ['user'] },
      ],
    });
    const plan = planDocument(JSON.stringify(collection));
    const groups = plan.groups.map(({ name, operations }) => `${name} ${operations}`);
    assert.deepEqual(groups, ['Orders 2', 'photos 1', 'login 1']);
    assert.doesNotMatch(JSON.stringify(plan), /secret-value/);
  });

  it('[imp 1] reads a query block of a Bruno request as its parameters, or as its method', () => {
    const files = [
      'meta {\n  name: Find\n}\nget {\n  url: https://api.example.com/a\n}\nquery {\n  q: hat\n}',
      'meta {\n  name: Ask\n}\nquery {\n  url: https://api.example.com/b\n  body: json\n}\nbody:json {\n  {"x": 1}\n}',
    ];
    const { tools } = describeConfig(files.join('\n'));
    assert.deepEqual(pluck(tools, 'request'), ['GET /a', 'QUERY /b']);
    assert.deepEqual(pluck(tools, 'inputs'), [['q'], ['x']]);
  });

  it('[imp 1] imports the API requests of a browser recording, one tool per request shape, without cookies', () => {
    const headers = toEntries({ Cookie: 'session=abc', 'sec-fetch-mode': 'cors', 'X-CSRF-Token': 'csrf' });
    const entry = (method: string, path: string, mimeType = 'application/json', postData?: object) => ({
      request: { method, url: `https://app.example.com${path}`, headers, postData },
      response: { content: { mimeType } },
    });
    const entries = [
      entry('GET', '/', 'text/html'),
      entry('GET', '/logo.png', 'image/png'),
      entry('GET', '/api/users/17'),
      entry('GET', '/api/users/18'),
      entry('POST', '/api/users', undefined, { mimeType: 'application/json', text: '{"name":"x"}' }),
    ];
    const recording = { log: { version: '1.2', entries } };
    assert.deepEqual(describeConfig(recording).tools, [
      { name: 'get_user', request: 'GET /api/users/:user_id', inputs: ['user_id'] },
      { name: 'create_user', request: 'POST /api/users', inputs: ['name'] },
    ]);
    assert.doesNotMatch(JSON.stringify(planDocument(JSON.stringify(recording))), /session=abc|csrf"/);
  });

  it('[imp 1] keeps request values that may be credentials out of the tools', () => {
    const json = { mimeType: 'application/json', text: '{"user":"kim","password":"zq-7","more":{"apiKey":["zq-8"]}}' };
    const login = {
      method: 'POST',
      url: 'https://kim:zq-1@api.example.com/v1/login?client_secret=zq-2&sig=zq-3&page=7',
      headers: toEntries({ 'X-JWT': 'zq-4', 'X-CSRF': 'zq-5', 'X-Trace': 'zq6zq6zq6zq6zq6zq6zq6zq6' }),
      postData: json,
    };
    const params = toEntries({ refreshToken: 'zq-10', pin: '4711', size: '12' });
    const form = { mimeType: 'application/x-www-form-urlencoded', params };
    const bot = { method: 'POST', url: 'https://api.example.com/bot123456:zq9-zq/send', headers: [], postData: form };
    const hook = { method: 'GET', url: 'https://api.example.com/hooks/T0/zq1zq2zq3zq4zq5zq6zq7zq8', headers: [] };
    const plan = planAll(record(login, bot, hook));
    assert.doesNotMatch(JSON.stringify([plan.all, plan.config, plan.questions, plan.title]), /zq|4711/);
    assert.match(JSON.stringify(plan.all), /Example: 7.*Example: 12/);
    const curl = planAll('curl https://kim:zq-1@api.example.com/v1/orders');
    assert.doesNotMatch(JSON.stringify([curl.all, curl.config, curl.title]), /zq/);
    const basic = { type: 'Basic', user: '{{BASIC_USER}}', password: '{{BASIC_PASSWORD}}' };
    assert.deepEqual(curl.config?.authentication, basic);
  });

  it('[imp 1] sends a credential only to the origin whose requests had it', () => {
    const request = (url: string, token?: string) => ({
      method: 'GET',
      url: `https://${url}`,
      headers: token === undefined ? [] : toEntries({ Authorization: `Bearer ${token}` }),
    });
    const things = request('api.example.com/things', 'a');
    const open = request('api.example.com/open');
    const tracker = request('stats.example.net/collect');
    const others = [request('api.example.com/more', 'a'), request('b.example.org/x', 'b')];
    const byHand = { answers: { credential: 'header:X-Key' } };
    const mixed = record(things, open, tracker);
    const cases: [recording: object, choices: object, urls: string[]][] = [
      [mixed, {}, ['/things', '/open']],
      [record(things, ...others), {}, ['/things', '/more']],
      [record(tracker, things), {}, ['https://api.example.com/things']],
      [record(open, tracker), byHand, ['/open']],
      [mixed, { server: 'https://api.example.com' }, ['/things', '/open', '/collect']],
    ];
    for (const [recording, choices, urls] of cases)
      assert.deepEqual(pluck(planAll(recording, choices).config?.tools ?? [], 'url'), urls);
    assert.equal(planAll(mixed, { answers: { credential: 'none' } }).config?.tools.length, 3);
    const notes = planAll(mixed).all[2]?.notes.join() ?? '';
    assert.match(notes, /its address differs from the address of the credential/);
  });

  it('[imp 1] keeps API words, versions, and dates of a path as constants', () => {
    const planCurl = (...commands: string[]) => planAll(commands.map((one) => `curl ${one}`).join('\n')).config;
    const paths = [
      '/rpc/getCustomerSubscriptionDetails',
      '/rpc/listAllAvailableProductCategories',
      '/reports/sales_report_2024_q1_v2',
      '/Products(ProductID=17,Code=23)',
    ];
    const [first, ...others] = paths.map((path) => `https://api.example.com${path}`);
    const config = planCurl(`'${first}?customer=5'`, ...others.map((url) => `'${url}'`));
    assert.deepEqual(
      config?.tools.map(({ url }) => url.replace(/\?.*/, '')),
      paths,
    );
    const headers = "-H 'anthropic-beta: prompt-caching-2024-07-31' -H 'X-Amz-Target: DynamoDB_20120810.ListTables'";
    const dated = planCurl(`https://api.example.com/a ${headers}`);
    assert.match(JSON.stringify(dated), /prompt-caching-2024-07-31.*DynamoDB_20120810\.ListTables/);
  });

  it('[imp 1] omits tracing header values, and makes the header optional', () => {
    const trace =
      "-H 'X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7' -H 'X-Client-Version: 9fceb02d0ae598e95dc970b74767f193'";
    const { all, config } = planAll(`curl https://api.example.com/a -H 'Authorization: Bearer t' ${trace}`);
    const bearer = { type: 'Bearer', token: '{{BEARER_TOKEN}}' };
    assert.deepEqual([config?.tools.length, config?.authentication], [1, bearer]);
    assert.doesNotMatch(JSON.stringify([all, config]), /80f198ee|9fceb02d/);
  });

  it('[imp 1] treats a credential as the same over http and https, and in any case of the host name', () => {
    const key = "-H 'X-Api-Key: k'";
    const text = `curl http://api.example.com/a ${key}\ncurl https://API.example.com/b ${key}`;
    const { config } = planAll(text);
    assert.deepEqual([config?.tools.length, JSON.stringify(config).match(/"type":"ApiKey"/g)?.length], [2, 1]);
  });
});
