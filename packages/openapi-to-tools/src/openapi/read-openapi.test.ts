import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import {
  getOnlyTool,
  getValidConfig,
  listOutcomes,
  openApi,
  planDocument,
} from '../../../../test/support/import/import-plans.ts';

const swagger = (paths: object, fields: object = {}) => ({
  swagger: '2.0',
  info: { title: 'Pets', version: '1' },
  host: 'api.example.com',
  basePath: '/v1',
  schemes: ['http', 'https'],
  paths,
  ...fields,
});

const pets = openApi({
  '/pets/{petId}': {
    parameters: [{ name: 'petId', in: 'path', required: true, schema: { type: 'string' } }],
    get: { operationId: 'getPet', summary: 'One pet of the shop', responses: { 200: { description: 'it' } } },
    patch: {
      operationId: 'pets/update',
      summary: 'Change a pet of the shop',
      requestBody: {
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['name'],
              properties: {
                name: { type: 'string', description: 'Its name.' },
                tags: { type: 'array', items: { type: 'string' } },
                id: { type: 'integer', readOnly: true },
              },
            },
          },
        },
      },
    },
  },
});

describe('reading of API descriptions', () => {
  it('[imp 1] creates a tool for each operation below the server URL', () => {
    const config = getValidConfig(planDocument(pets));
    assert.deepEqual(config, {
      name: 'Things',
      slug: 'things',
      base_url: 'https://api.example.com/v1',
      max_response_tokens: 20_000,
      tools: [
        {
          name: 'get_pet',
          description: 'One pet of the shop. GET /pets/{petId}',
          method: 'GET',
          url: '/pets/:petId',
          input_schema: { petId: { type: 'string' } },
          imported_from: 'GET /pets/{petId}',
        },
        {
          name: 'pets_update',
          description: 'Change a pet of the shop',
          method: 'PATCH',
          url: '/pets/:petId',
          input_schema: {
            petId: { type: 'string' },
            name: { type: 'string', description: 'Its name.' },
            tags: { type: 'array', items: { type: 'string' }, optional: true },
          },
          imported_from: 'PATCH /pets/{petId}',
        },
      ],
    });
  });

  it('[imp 1] creates the same tools from JSON, YAML, and a document with another key order', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .map(([name, inner]) => [name, reversed(inner)])
          .toReversed(),
      );
    };
    const toConfigJson = (document: Parameters<typeof planDocument>[0]) =>
      JSON.stringify(getValidConfig(planDocument(document)));
    assert.equal(toConfigJson(stringify(pets)), toConfigJson(pets));
    assert.equal(toConfigJson(`\ufeff${JSON.stringify(pets)}`), toConfigJson(pets));
    const byName = (document: Parameters<typeof planDocument>[0]) =>
      getValidConfig(planDocument(document))
        .tools.map(({ name, url, method }) => `${name} ${method} ${url}`)
        .toSorted();
    assert.deepEqual(byName(reversed(pets) as typeof pets), byName(pets));
  });

  it('[imp 1] reads the host, array formats, body, and form of Swagger 2', () => {
    const body = { in: 'body', name: 'pet', required: true, schema: { $ref: '#/definitions/Pet' } };
    const document = swagger(
      {
        '/pets': {
          get: {
            operationId: 'listPets',
            description: 'All pets of the shop.',
            parameters: [
              { name: 'status', in: 'query', type: 'array', items: { type: 'string' } },
              { name: 'ids', in: 'query', type: 'array', items: { type: 'integer' }, collectionFormat: 'multi' },
            ],
          },
          post: { operationId: 'addPet', description: 'Adds a pet to the shop.', parameters: [body] },
        },
        '/pets/{id}/photo': {
          post: {
            operationId: 'addPhoto',
            description: 'Adds a photo of a pet.',
            consumes: ['multipart/form-data'],
            parameters: [
              { name: 'id', in: 'path', type: 'string', required: true },
              { name: 'photo', in: 'formData', type: 'file', required: true },
              { name: 'caption', in: 'formData', type: 'string' },
            ],
          },
        },
      },
      {
        definitions: {
          Pet: { type: 'object', required: ['name'], properties: { name: { type: 'string', 'x-nullable': true } } },
        },
      },
    );
    const { base_url, tools } = getValidConfig(planDocument(document));
    assert.equal(base_url, 'https://api.example.com/v1');
    assert.deepEqual(
      tools.map((tool) => [tool.url, tool.body, tool.input_schema]),
      [
        [
          '/pets',
          undefined,
          {
            status: { type: 'array', items: { type: 'string' }, style: 'comma', optional: true },
            ids: { type: 'array', items: { type: 'integer' }, optional: true },
          },
        ],
        [
          '/pets',
          undefined,
          {
            type: 'object',
            properties: { name: { type: ['string', 'null'] } },
            required: ['name'],
            additionalProperties: false,
          },
        ],
        [
          '/pets/:id/photo',
          'multipart',
          {
            id: { type: 'string' },
            photo: { type: 'string', content: 'base64', file_name: { argument: 'photo_name' } },
            photo_name: { type: 'string', description: 'Name of the file in photo, such as photo.png.' },
            caption: { type: 'string', optional: true },
          },
        ],
      ],
    );
  });

  it('[imp 1] reports the location of unreadable parts, and reads the remainder', () => {
    const document = openApi({
      '/broken': 'text',
      '/elsewhere': { $ref: 'https://example.com/paths.yaml#/x' },
      '/missing': {
        get: {
          parameters: [{ $ref: '#/components/parameters/none' }, { in: 'nowhere', name: 'x' }, 7],
          operationId: 'missing',
        },
      },
      '/good': { get: { operationId: 'good', summary: 'A good operation, all of it' }, post: null },
    });
    const plan = planDocument(document);
    assert.deepEqual(
      plan.all.map(({ name, outcome }) => `${name} ${outcome}`),
      ['missing partial', 'good whole'],
    );
    assert.deepEqual(
      plan.findings.map(({ at, message }) => `${at}: ${message}`),
      [
        'paths./broken: is not an object of operations; left out',
        'paths./elsewhere: refers to "https://example.com/paths.yaml#/x", which is not fetched',
        'paths./missing.get.parameters[0]: refers to "#/components/parameters/none", which is missing',
        'paths./missing.get.parameters[2]: is not a parameter; left out',
        'paths./missing.get.parameters: parameter "x" in "nowhere" is left out; allowed: path, query, header, cookie, querystring',
        'paths./good.post: is not an operation; left out',
      ],
    );
  });

  it('[imp 1] repairs common errors in descriptions', () => {
    const document = openApi(
      {
        '/a/{id}//b': {
          get: {
            summary: 'Something of the thing',
            parameters: [
              { name: 'Authorization', in: 'header', schema: { type: 'string' } },
              { name: 'Content-Type', in: 'header', schema: { type: 'string' } },
              {
                name: 'size',
                in: 'query',
                schema: { type: 'integer', minimum: 0, exclusiveMinimum: true, default: 5 },
              },
              { name: 'gone', in: 'path', schema: { type: 'string' } },
            ],
            requestBody: {
              content: { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties: {} } } },
            },
          },
        },
      },
      { servers: [{ url: 'http://api.example.com//v1/' }] },
    );
    const plan = planDocument(document);
    const [planned] = plan.all;
    assert.deepEqual(planned?.tool, {
      name: 'list_a_b',
      description: 'Something of the thing',
      method: 'GET',
      url: '/a/:id/b',
      input_schema: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          size: { type: 'integer', description: 'Default: 5', exclusiveMinimum: 0 },
        },
        required: ['id'],
        additionalProperties: false,
      },
      imported_from: 'GET /a/{id}//b',
    });
    assert.equal(getValidConfig(plan).base_url, 'https://api.example.com/v1');
    assert.deepEqual(planned?.repairs.toSorted(), [
      'a GET request has no body',
      'the credential "Authorization" is listed as a parameter',
      'the path has no "gone"',
      'the path parameter "id" is not described',
    ]);
  });

  it('[imp 2] serializes arrays and objects as described', () => {
    const array = { type: 'array', items: { type: 'string' } };
    const object = { type: 'object', properties: { a: { type: 'string' } } };
    const tool = getOnlyTool(
      openApi({
        '/x': {
          get: {
            summary: 'Everything about x',
            parameters: [
              { name: 'r', in: 'query', schema: array },
              { name: 'c', in: 'query', schema: array, explode: false },
              { name: 'p', in: 'query', schema: array, style: 'pipeDelimited' },
              { name: 's', in: 'query', schema: array, style: 'spaceDelimited' },
              { name: 'ids[]', in: 'query', schema: array },
              { name: 'deep', in: 'query', schema: object, style: 'deepObject' },
              { name: 'spread', in: 'query', schema: object },
              { name: 'pairs', in: 'query', schema: object, explode: false },
              { name: 'json', in: 'query', content: { 'application/json': { schema: object } } },
              { name: 'filter[status]', in: 'query', schema: { type: 'string' } },
              { name: '$top', in: 'query', schema: { type: 'integer' } },
              { name: 'StartTime>', in: 'query', schema: { type: 'string' } },
              { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
              { name: 'Api-Version', in: 'header', required: true, schema: { type: 'string', default: '2026-01-01' } },
              { name: 'format', in: 'query', required: true, schema: { enum: ['json:v1'] } },
            ],
          },
        },
      }),
    );
    assert.equal(tool.url, '/x?format=json%3Av1');
    assert.deepEqual(tool.headers, { 'Api-Version': '2026-01-01' });
    const wire = Object.entries(tool.input_schema).map(([name, definition]) => {
      const { style, wire_name, in: location } = definition as { [keyword: string]: unknown };
      return [name, style, wire_name, location].filter((part) => part !== undefined).join(' ');
    });
    assert.deepEqual(wire, [
      'r',
      'c comma',
      'p pipe',
      's space',
      'ids ids[]',
      'deep deep',
      'spread repeat',
      'pairs comma',
      'json json',
      'filter_status filter[status]',
      'top $top',
      'StartTime_gt StartTime>',
      'X-Trace header',
    ]);
  });

  it('[imp 2] takes the body as one argument when its fields cannot be separate arguments', () => {
    const withBody = (schema: object, path = '/x', contents = ['application/json']) =>
      getOnlyTool(
        openApi({
          [path]: {
            post: {
              summary: 'Something with a body',
              requestBody: { required: true, content: Object.fromEntries(contents.map((type) => [type, { schema }])) },
            },
          },
        }),
      );
    const names = (tool: ReturnType<typeof getOnlyTool>) =>
      Object.keys((tool.input_schema.properties ?? tool.input_schema) as object);
    const object = { type: 'object', properties: { id: { type: 'string' } } };
    assert.deepEqual(names(withBody(object)), ['id']);
    assert.deepEqual([names(withBody(object, '/x/{id}')), withBody(object, '/x/{id}').body], [['id', 'body'], 'body']);
    assert.deepEqual(names(withBody({ type: 'array', items: object })), ['body']);
    assert.deepEqual(names(withBody({ ...object, additionalProperties: true })), ['body']);
    assert.deepEqual(names(withBody({ oneOf: [object, { type: 'string' }] })), ['body']);
    const manyFields = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`f${index}`, { type: 'string' }]));
    assert.deepEqual(names(withBody({ type: 'object', properties: manyFields })), ['body']);
    const bytes = withBody({ type: 'string', format: 'binary' }, '/x', ['image/png']);
    assert.deepEqual(
      [bytes.body, bytes.headers, bytes.input_schema],
      [
        'file',
        { 'Content-Type': 'image/png' },
        { file: { type: 'string', description: 'The bytes of the body, as Base64 or a data URL.', content: 'base64' } },
      ],
    );
    const patch = withBody(object, '/x', ['application/json-patch+json', 'application/merge-patch+json']);
    assert.deepEqual(patch.headers, { 'Content-Type': 'application/merge-patch+json' });
  });

  it('[imp 3] reports what was loosened, what is missing, and why an operation was skipped', () => {
    const node = {
      type: 'object',
      properties: { name: { type: 'string', pattern: '^(?=a)' }, next: { $ref: '#/components/schemas/Node' } },
    };
    const operation = (fields: object) => ({ summary: 'Does something useful', ...fields });
    const document = openApi(
      {
        '/a': {
          post: operation({
            requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Node' } } } },
          }),
        },
        '/b': { get: operation({ parameters: [{ name: 'my session', in: 'cookie', schema: { type: 'string' } }] }) },
        '/c': {
          get: operation({
            parameters: [{ name: 'my session', in: 'cookie', required: true, schema: { type: 'string' } }],
          }),
        },
        '/d': { trace: operation({}) },
        '/e/{date}_PI.xml': { get: operation({}) },
        '/f': {
          get: operation({ requestBody: { required: true, content: { 'application/json': { schema: node } } } }),
        },
        '/g': { get: operation({ security: [{ certificate: [] }] }) },
        '/h/../i': { get: operation({}) },
      },
      { components: { schemas: { Node: node }, securitySchemes: { certificate: { type: 'mutualTLS' } } } },
    );
    assert.deepEqual(listOutcomes(document), [
      'POST /a: loosened; pattern; recursion',
      'GET /b: partial; the cookie "my session"',
      'GET /c: skipped; the cookie "my session"',
      'TRACE /d: skipped; the method TRACE',
      'GET /e/{date}_PI.xml: skipped; a path parameter followed by a letter',
      'GET /f: loosened; pattern; recursion',
      'GET /g: skipped; credentials of type "mutualtls"',
      'GET /h/../i: skipped; a path with . or .. segments',
    ]);
  });

  it('[imp 2] compares credential names as receivers do, with parameters and with each other', () => {
    const apiKey = (where: string, name: string) => ({ type: 'apiKey', in: where, name });
    const securitySchemes = {
      dotted: apiKey('query', 'api.key'),
      lined: apiKey('query', 'API_KEY'),
      header: apiKey('header', 'X-Key'),
      same: apiKey('header', 'x_key'),
    };
    const text = { type: 'string' };
    const parameters = [
      { name: 'api_key', in: 'query', schema: text },
      { name: 'X.Key', in: 'header', schema: text },
      { name: 'kept', in: 'query', schema: text },
    ];
    const get = { summary: 'Everything that there is', parameters };
    const document = (...names: string[]) =>
      openApi(
        { '/x': { get: { ...get, security: [Object.fromEntries(names.map((name) => [name, []]))] } } },
        { components: { securitySchemes } },
      );
    const config = getValidConfig(planDocument(document('dotted', 'header')));
    assert.deepEqual(Object.keys(config.tools[0]?.input_schema ?? {}), ['kept']);
    for (const names of [
      ['dotted', 'lined'],
      ['header', 'same'],
    ]) {
      const { authentication } = getValidConfig(planDocument(document(...names)));
      assert.ok(!Array.isArray(authentication), JSON.stringify(authentication));
    }
  });

  it('[imp 2] assigns a tool credential when the server credential is not enough, and none when the document requires none', () => {
    const get = (...security: object[]) => ({ get: { summary: 'Everything that there is', security } });
    const document = openApi(
      {
        '/a': get({ api: [] }),
        '/b': get({ api: [] }),
        '/either': get({ 'admin-key': [] }, { api: [] }),
        '/admin': get({ 'admin-key': [] }),
        '/pair': get({ id: [], key: [] }),
        '/login': get({ login: ['read'] }),
        '/maybe': get({}, { api: [] }),
        '/open': get(),
      },
      {
        components: {
          securitySchemes: {
            api: { type: 'http', scheme: 'bearer' },
            'admin-key': { type: 'http', scheme: 'bearer' },
            id: { type: 'apiKey', in: 'header', name: 'X-Id' },
            key: { type: 'apiKey', in: 'query', name: 'key' },
            login: {
              type: 'oauth2',
              flows: {
                authorizationCode: {
                  authorizationUrl: 'https://login.example.com/authorize',
                  tokenUrl: 'https://login.example.com/token',
                  scopes: { read: 'reads' },
                },
              },
            },
          },
        },
      },
    );
    const summarize = (include: string[], answers = {}) => {
      const plan = planDocument(document, { include, answers });
      const { authentication, credentials = {}, tools } = getValidConfig(plan);
      const named = tools.map(({ url, credential }) => (credential === undefined ? url : `${url} ${credential}`));
      return { authentication, credentials, named, secrets: plan.secrets.map(({ name }) => name), all: plan.all };
    };
    const { all: _, ...everything } = summarize(['*']);
    assert.deepEqual(everything, {
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      credentials: {
        'admin-key': { type: 'Bearer', token: '{{ADMIN_KEY_TOKEN}}' },
        id_key: [
          { type: 'ApiKey', header: 'X-Id', token: '{{ID_KEY}}' },
          { type: 'QueryParam', query_key: 'key', token: '{{KEY}}' },
        ],
        login: { type: 'Bearer', token: '{{LOGIN_TOKEN}}' },
      },
      named: ['/a', '/b', '/either', '/admin admin-key', '/pair id_key', '/login login', '/maybe', '/open none'],
      secrets: ['API_TOKEN', 'ADMIN_KEY_TOKEN', 'LOGIN_TOKEN', 'ID_KEY', 'KEY'],
    });
    const subset = summarize(['/a', '/pair', '/open']);
    assert.deepEqual([subset.secrets, Object.keys(subset.credentials)], [['API_TOKEN', 'ID_KEY', 'KEY'], ['id_key']]);
    // The credential of most imported tools becomes the server credential.
    const adminSubset = summarize(['/either', '/admin']);
    assert.deepEqual(
      [adminSubset.authentication, adminSubset.named, adminSubset.secrets],
      [{ type: 'Bearer', token: '{{ADMIN_KEY_TOKEN}}' }, ['/either', '/admin'], ['ADMIN_KEY_TOKEN']],
    );
    const login = summarize(['*'], { credential: 'login', client_id: 'id', client_secret: 'secret' });
    assert.deepEqual([login.named, login.secrets], [['/login', '/maybe', '/open none'], []]);
    assert.match(login.all[3]?.notes.join() ?? '', /needs the credential "admin-key"/);
    const byHand = summarize(['*'], { credential: 'header:X-Key' });
    assert.deepEqual([byHand.credentials, byHand.named.filter((text) => text.includes(' '))], [{}, []]);
  });

  it('[imp 2] inlines schemas, and omits everything that clients reject', () => {
    const tool = getOnlyTool(
      openApi(
        {
          '/x': {
            post: {
              summary: 'Everything at once',
              requestBody: {
                content: {
                  'application/json': {
                    schema: {
                      allOf: [
                        { $ref: '#/components/schemas/Base' },
                        {
                          type: 'object',
                          properties: {
                            list: { type: 'array' },
                            either: { oneOf: [{ type: 'string', pattern: 'x' }, { type: 'null' }] },
                            kind: {
                              oneOf: [
                                { type: 'string', enum: ['a'] },
                                { type: 'string', enum: ['b'] },
                              ],
                            },
                            nested: {
                              type: 'object',
                              properties: { '@type': { type: 'string' }, ok: { type: 'string' } },
                              required: ['@type', 'ok'],
                            },
                            day: { $ref: '#/components/schemas/Day', nullable: true, description: 'The day.' },
                            flag: { type: 'string', enum: [true, false] },
                          },
                        },
                      ],
                    },
                  },
                },
              },
            },
          },
        },
        {
          components: {
            schemas: {
              Base: {
                type: 'object',
                required: ['id'],
                properties: { id: { type: 'integer', format: 'int64', maximum: 2 ** 63 } },
              },
              Day: { type: 'string', enum: ['mon', 'tue'] },
            },
          },
        },
      ),
    );
    assert.deepEqual(tool.input_schema, {
      type: 'object',
      properties: {
        list: { type: 'array', items: {} },
        either: { type: ['string', 'null'], pattern: 'x' },
        kind: { type: 'string', enum: ['a', 'b'] },
        nested: {
          type: 'object',
          description: 'Also takes @type (string, required)',
          properties: { ok: { type: 'string' } },
          required: ['ok'],
        },
        day: { type: ['string', 'null'], description: 'The day.', enum: ['mon', 'tue', null] },
        flag: { type: 'string', enum: ['true', 'false'] },
        id: { type: 'integer' },
      },
      required: ['id'],
      additionalProperties: false,
    });
  });

  it('[imp 2] accepts names that differ only in case or separators, and assigns separate secrets', () => {
    const key = (name: string) => ({ type: 'apiKey', in: 'header', name });
    const headers = ['X_Y', 'X-Y', 'x-y'].map((name) => ({ name, in: 'header', schema: { type: 'string' } }));
    const get = { summary: 'Gets one thing', parameters: headers, security: [{ 'X-Key': [], x_key: [] }] };
    const components = { securitySchemes: { 'X-Key': key('X-One'), x_key: key('X-Two') } };
    const config = getValidConfig(planDocument(openApi({ '/a': { get } }, { components })));
    assert.deepEqual(config.authentication, [
      { type: 'ApiKey', header: 'X-One', token: '{{X_KEY}}' },
      { type: 'ApiKey', header: 'X-Two', token: '{{X_KEY_2}}' },
    ]);
    assert.deepEqual(Object.keys(config.tools[0]?.input_schema ?? {}), ['X_Y']);
  });
});
