import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getValidConfig, planDocument } from '../../../../test/support/import/import-plans.ts';

const shown = (text: string, answers: Record<string, string> = {}) => {
  const config = getValidConfig(planDocument(text, { include: ['*'], answers }));
  const tools = config.tools.map(({ name, method, url, headers, body, input_schema }) => ({
    name,
    request: `${method} ${url}`,
    ...(headers && { headers }),
    ...(body && { body }),
    inputs: Object.keys((input_schema.properties ?? input_schema) as object),
  }));
  return { base: config.base_url, authentication: config.authentication, tools };
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
    const { base, tools } = shown(text);
    assert.equal(base, 'https://api.example.com');
    assert.deepEqual(tools[0], {
      name: 'create_order',
      request: 'POST /v1/orders',
      headers: { 'X-Api-Version': '2026-01' },
      inputs: ['dry_run', 'name', 'lines'],
    });
    const plan = planDocument(text, { include: ['*'] });
    assert.deepEqual(
      plan.all.map(({ operation, outcome }) => `${operation.method} ${operation.path} ${outcome}`),
      [
        'POST /v1/orders whole',
        'GET /v1/orders/{order_id}/items whole',
        'POST /v1/files whole',
        'GET /v1/search whole',
        'HEAD /health whole',
      ],
    );
    assert.doesNotMatch(JSON.stringify(plan), /sk-live-secret|user:pass|abc/);
    assert.deepEqual(tools[1]?.inputs, ['order_id', 'limit']);
    assert.deepEqual(tools[2]?.inputs, ['file', 'file_name', 'title']);
    assert.deepEqual(tools[3]?.inputs, ['q', 'page']);
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
      const plan = planDocument(text, { include: ['*'], answers: { credential: 'none' } });
      const [first, second] = plan.all.map(({ operation }) => operation);
      assert.equal(`${first?.method} ${first?.path}`, 'GET /orders');
      assert.deepEqual(
        first?.inputs.map(({ name, schema }) => [name, (schema as { example: unknown }).example]),
        [
          ['status', 'open'],
          ['limit', 20],
          ['q', 'a b'],
        ],
      );
      assert.deepEqual([...(first?.security[0]?.keys() ?? [])], ['bearer']);
      assert.equal(`${second?.method} ${second?.path}`, 'PUT /notes');
      const text5 = { type: 'string', example: text === before ? '5 $' : '5 $ & ^ more' };
      assert.deepEqual(second?.body?.contents[0]?.schema, {
        type: 'object',
        properties: {
          text: text5,
          path: { type: 'string', example: 'a\\b' },
        },
      });
      assert.doesNotMatch(JSON.stringify(plan), /xyz/);
    }
  });

  it('[imp 1] imports a Postman collection with folders, variables, inherited credentials, and every kind of body', () => {
    const collection = {
      info: { name: 'Shop', schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
      auth: {
        type: 'apikey',
        apikey: [
          { key: 'key', value: 'X-Shop' },
          { key: 'value', value: 'secret-value' },
          { key: 'in', value: 'header' },
        ],
      },
      variable: [{ key: 'baseUrl', value: 'https://shop.example.com/api' }],
      item: [
        {
          name: 'Orders',
          item: [
            {
              name: 'Get an order',
              request: {
                method: 'GET',
                url: {
                  raw: '{{baseUrl}}/orders/:orderId?expand={{expand}}',
                  query: [{ key: 'expand', value: '{{expand}}' }],
                },
                description: 'One order of the shop with its lines.',
              },
            },
            {
              name: 'Add an order',
              request: {
                method: 'POST',
                url: '{{baseUrl}}/orders',
                header: [{ key: 'X-Trace', value: '' }],
                body: {
                  mode: 'raw',
                  raw: '{"customer": {{customer}}, "note": "hi"}',
                  options: { raw: { language: 'json' } },
                },
              },
            },
          ],
        },
        {
          name: 'Upload a photo',
          request: {
            method: 'PUT',
            url: '{{baseUrl}}/photos/{{id}}',
            body: {
              mode: 'formdata',
              formdata: [
                { key: 'photo', type: 'file' },
                { key: 'alt', value: 'A cat' },
              ],
            },
          },
        },
        {
          name: 'Log in',
          request: {
            method: 'POST',
            url: '{{baseUrl}}/login',
            body: { mode: 'urlencoded', urlencoded: [{ key: 'user', value: 'me' }] },
          },
        },
      ],
    };
    assert.deepEqual(shown(JSON.stringify(collection)), {
      base: 'https://shop.example.com',
      authentication: { type: 'ApiKey', header: 'X-Shop', token: '{{X_SHOP_KEY}}' },
      tools: [
        { name: 'get_an_order', request: 'GET /api/orders/:orderId', inputs: ['orderId', 'expand'] },
        { name: 'add_an_order', request: 'POST /api/orders', inputs: ['X-Trace', 'customer', 'note'] },
        {
          name: 'upload_a_photo',
          request: 'PUT /api/photos/:id',
          body: 'multipart',
          inputs: ['id', 'photo', 'photo_name', 'alt'],
        },
        { name: 'log_in', request: 'POST /api/login', body: 'form', inputs: ['user'] },
      ],
    });
    const plan = planDocument(JSON.stringify(collection));
    assert.deepEqual(
      plan.groups.map(({ name, operations }) => `${name} ${operations}`),
      ['Orders 2', 'photos 1', 'login 1'],
    );
    assert.doesNotMatch(JSON.stringify(plan), /secret-value/);
  });

  it('[imp 1] imports the API requests of a browser recording, one tool per request shape, without cookies', () => {
    const entry = (method: string, url: string, mimeType: string, postData?: object) => ({
      request: {
        method,
        url,
        headers: [
          { name: 'Cookie', value: 'session=abc' },
          { name: 'sec-fetch-mode', value: 'cors' },
          { name: 'X-CSRF-Token', value: 'csrf' },
        ],
        postData,
      },
      response: { content: { mimeType } },
    });
    const har = {
      log: {
        version: '1.2',
        entries: [
          entry('GET', 'https://app.example.com/', 'text/html'),
          entry('GET', 'https://app.example.com/logo.png', 'image/png'),
          entry('GET', 'https://app.example.com/api/users/17', 'application/json'),
          entry('GET', 'https://app.example.com/api/users/18', 'application/json'),
          entry('POST', 'https://app.example.com/api/users', 'application/json', {
            mimeType: 'application/json',
            text: '{"name":"x"}',
          }),
        ],
      },
    };
    const { tools } = shown(JSON.stringify(har));
    assert.deepEqual(tools, [
      { name: 'get_user', request: 'GET /api/users/:user_id', inputs: ['user_id'] },
      { name: 'create_user', request: 'POST /api/users', inputs: ['name'] },
    ]);
    assert.doesNotMatch(JSON.stringify(planDocument(JSON.stringify(har))), /session=abc|csrf"/);
  });

  it('[imp 1] keeps request values that may be credentials out of the tools', () => {
    const entries = [
      {
        method: 'POST',
        url: 'https://kim:zq-1@api.example.com/v1/login?client_secret=zq-2&sig=zq-3&page=7',
        headers: [
          { name: 'X-JWT', value: 'zq-4' },
          { name: 'X-CSRF', value: 'zq-5' },
          { name: 'X-Trace', value: 'zq6zq6zq6zq6zq6zq6zq6zq6' },
        ],
        postData: { mimeType: 'application/json', text: '{"user":"kim","password":"zq-7","more":{"apiKey":["zq-8"]}}' },
      },
      {
        method: 'POST',
        url: 'https://api.example.com/bot123456:zq9-zq/send',
        headers: [],
        postData: {
          mimeType: 'application/x-www-form-urlencoded',
          params: [
            { name: 'refreshToken', value: 'zq-10' },
            { name: 'pin', value: '4711' },
            { name: 'size', value: '12' },
          ],
        },
      },
      { method: 'GET', url: 'https://api.example.com/hooks/T0/zq1zq2zq3zq4zq5zq6zq7zq8', headers: [] },
    ].map((request) => ({ request, response: { content: { mimeType: 'application/json' } } }));
    const plan = planDocument(JSON.stringify({ log: { version: '1.2', entries } }), { include: ['*'] });
    assert.doesNotMatch(JSON.stringify([plan.all, plan.config, plan.questions, plan.title]), /zq|4711/);
    assert.match(JSON.stringify(plan.all), /Example: 7.*Example: 12/);
    const curl = planDocument('curl https://kim:zq-1@api.example.com/v1/orders', { include: ['*'] });
    assert.doesNotMatch(JSON.stringify([curl.all, curl.config, curl.title]), /zq/);
    assert.deepEqual(curl.config?.authentication, {
      type: 'Basic',
      user: '{{BASIC_USER}}',
      password: '{{BASIC_PASSWORD}}',
    });
  });

  it('[imp 1] sends a credential only to the origin whose requests had it', () => {
    const request = (url: string, token?: string) => ({
      request: {
        method: 'GET',
        url,
        headers: token === undefined ? [] : [{ name: 'Authorization', value: `Bearer ${token}` }],
      },
      response: { content: { mimeType: 'application/json' } },
    });
    const recording = (...entries: object[]) => JSON.stringify({ log: { version: '1.2', entries } });
    const planRecording = (text: string, choices = {}) => {
      const plan = planDocument(text, { include: ['*'], ...choices });
      return { urls: plan.config?.tools.map(({ url }) => url), authentication: plan.config?.authentication, plan };
    };
    const thingsRequest = request('https://api.example.com/things', 'a');
    const trackerRequest = request('https://stats.example.net/collect');
    const mixedRecording = recording(thingsRequest, request('https://api.example.com/open'), trackerRequest);
    assert.deepEqual(planRecording(mixedRecording).urls, ['/things', '/open']);
    assert.match(
      planRecording(mixedRecording).plan.all[2]?.notes.join() ?? '',
      /its address differs from the address of the credential/,
    );
    const ambiguousRecording = recording(
      thingsRequest,
      request('https://api.example.com/more', 'a'),
      request('https://b.example.org/x', 'b'),
    );
    assert.deepEqual(planRecording(ambiguousRecording).urls, ['/things', '/more']);
    const later = planRecording(recording(trackerRequest, thingsRequest));
    assert.deepEqual(later.urls, ['https://api.example.com/things']);
    const byHand = { answers: { credential: 'header:X-Key' } };
    assert.deepEqual(planRecording(recording(request('https://api.example.com/open'), trackerRequest), byHand).urls, [
      '/open',
    ]);
    assert.deepEqual(planRecording(mixedRecording, { answers: { credential: 'none' } }).urls?.length, 3);
    assert.deepEqual(planRecording(mixedRecording, { server: 'https://api.example.com' }).urls, [
      '/things',
      '/open',
      '/collect',
    ]);
  });

  it('[imp 1] keeps API words, versions, and dates of a path as constants', () => {
    const curls = (...urls: string[]) => planDocument(urls.map((url) => `curl ${url}`).join('\n'), { include: ['*'] });
    const { config } = curls(
      "'https://api.example.com/rpc/getCustomerSubscriptionDetails?customer=5'",
      'https://api.example.com/rpc/listAllAvailableProductCategories',
      'https://api.example.com/reports/sales_report_2024_q1_v2',
      "'https://api.example.com/Products(ProductID=17,Code=23)'",
    );
    assert.deepEqual(
      config?.tools.map(({ url }) => url.replace(/\?.*/, '')),
      [
        '/rpc/getCustomerSubscriptionDetails',
        '/rpc/listAllAvailableProductCategories',
        '/reports/sales_report_2024_q1_v2',
        '/Products(ProductID=17,Code=23)',
      ],
    );
    const dated = curls(
      "https://api.example.com/a -H 'anthropic-beta: prompt-caching-2024-07-31' -H 'X-Amz-Target: DynamoDB_20120810.ListTables'",
    );
    assert.match(JSON.stringify(dated.config), /prompt-caching-2024-07-31.*DynamoDB_20120810\.ListTables/);
  });

  it('[imp 1] omits tracing header values, and makes the header optional', () => {
    const trace =
      "-H 'X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7' -H 'X-Client-Version: 9fceb02d0ae598e95dc970b74767f193'";
    const plan = planDocument(`curl https://api.example.com/a -H 'Authorization: Bearer t' ${trace}`, {
      include: ['*'],
    });
    assert.deepEqual(
      [plan.config?.tools.length, plan.config?.authentication],
      [1, { type: 'Bearer', token: '{{BEARER_TOKEN}}' }],
    );
    assert.doesNotMatch(JSON.stringify([plan.all, plan.config]), /80f198ee|9fceb02d/);
  });

  it('[imp 1] treats a credential as the same over http and https, and in any case of the host name', () => {
    const key = "-H 'X-Api-Key: k'";
    const text = `curl http://api.example.com/a ${key}\ncurl https://API.example.com/b ${key}`;
    const { config } = planDocument(text, { include: ['*'] });
    assert.deepEqual([config?.tools.length, JSON.stringify(config).match(/"type":"ApiKey"/g)?.length], [2, 1]);
  });
});
