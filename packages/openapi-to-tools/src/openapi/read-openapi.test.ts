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
import { pluck } from '../../../../test/support/pluck.ts';
import {
  cookie,
  header,
  inPath,
  integer,
  jsonBody,
  listOf,
  object,
  query,
  text,
} from '../../../../test/support/schemas.ts';

const closed = { additionalProperties: false };
const described = { summary: 'Something useful that an operation does' };
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const getArguments = ({ input_schema: schema }: ReturnType<typeof getOnlyTool>) =>
  Object.keys((schema.properties ?? schema) as object);

const pets = openApi({
  '/pets/{petId}': {
    parameters: [inPath('petId')],
    get: { operationId: 'getPet', summary: 'One pet of the shop', responses: { 200: { description: 'it' } } },
    patch: {
      operationId: 'pets/update',
      summary: 'Change a pet of the shop',
      requestBody: jsonBody(
        object(
          { name: { ...text, description: 'Its name.' }, tags: listOf(text), id: { ...integer, readOnly: true } },
          ['name'],
        ),
      ),
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
          input_schema: { petId: text },
          imported_from: 'GET /pets/{petId}',
        },
        {
          name: 'pets_update',
          description: 'Change a pet of the shop',
          method: 'PATCH',
          url: '/pets/:petId',
          input_schema: {
            petId: text,
            name: { type: 'string', description: 'Its name.' },
            tags: { type: 'array', items: text, optional: true },
          },
          imported_from: 'PATCH /pets/{petId}',
        },
      ],
    });
  });

  it('[imp 1] creates the same tools from JSON, YAML, and a document with another key order', () => {
    const reverse = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reverse);
      if (typeof value !== 'object' || value === null) return value;
      const entries = Object.entries(value).map(([name, inner]) => [name, reverse(inner)]);
      return Object.fromEntries(entries.toReversed());
    };
    const plan = (document: typeof pets | string) => getValidConfig(planDocument(document));
    for (const written of [stringify(pets), `\ufeff${JSON.stringify(pets)}`])
      assert.equal(JSON.stringify(plan(written)), JSON.stringify(plan(pets)));
    const listTools = (document: typeof pets) =>
      plan(document).tools.map(({ name, url, method }) => `${name} ${method} ${url}`);
    assert.deepEqual(listTools(reverse(pets) as typeof pets).toSorted(), listTools(pets).toSorted());
  });

  it('[imp 1] reads the host, array formats, body, and form of Swagger 2', () => {
    const body = { in: 'body', name: 'pet', required: true, schema: { $ref: '#/definitions/Pet' } };
    const paths = {
      '/pets': {
        get: {
          operationId: 'listPets',
          parameters: [
            { name: 'status', in: 'query', ...listOf(text) },
            { name: 'ids', in: 'query', ...listOf(integer), collectionFormat: 'multi' },
          ],
        },
        post: { operationId: 'addPet', parameters: [body] },
      },
      '/pets/{id}/photo': {
        post: {
          operationId: 'addPhoto',
          consumes: ['multipart/form-data'],
          parameters: [
            { name: 'id', in: 'path', type: 'string', required: true },
            { name: 'photo', in: 'formData', type: 'file', required: true },
            { name: 'caption', in: 'formData', type: 'string' },
          ],
        },
      },
    };
    const { base_url, tools } = getValidConfig(
      planDocument({
        swagger: '2.0',
        info: { title: 'Pets', version: '1' },
        ...{ host: 'api.example.com', basePath: '/v1', schemes: ['http', 'https'], paths },
        definitions: { Pet: object({ name: { ...text, 'x-nullable': true } }, ['name']) },
      }),
    );
    assert.equal(base_url, 'https://api.example.com/v1');
    const [list, add, photo, ...others] = tools.map((tool) => [tool.url, tool.body, tool.input_schema]);
    const status = { ...listOf(text), style: 'comma', optional: true };
    assert.deepEqual(list, ['/pets', undefined, { status, ids: { ...listOf(integer), optional: true } }]);
    assert.deepEqual(add, [
      '/pets',
      undefined,
      { ...object({ name: { type: ['string', 'null'] } }, ['name']), ...closed },
    ]);
    const photoSchema = {
      id: text,
      photo: { ...text, content: 'base64', file_name: { argument: 'photo_name' } },
      photo_name: { ...text, description: 'Name of the file in photo, such as photo.png.' },
      caption: { ...text, optional: true },
    };
    assert.deepEqual([photo, others], [['/pets/:id/photo', 'multipart', photoSchema], []]);
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
    const { all, findings } = planDocument(document);
    const outcomes = all.map(({ name, outcome }) => `${name} ${outcome}`);
    assert.deepEqual(outcomes, ['missing partial', 'good whole']);
    const reports = findings.map(({ at, message }) => `${at}: ${message}`);
    assert.deepEqual(reports, [
      'paths./broken: is not an object of operations; left out',
      'paths./elsewhere: refers to "https://example.com/paths.yaml#/x", which is not fetched',
      'paths./missing.get.parameters[0]: refers to "#/components/parameters/none", which is missing',
      'paths./missing.get.parameters[2]: is not a parameter; left out',
      'paths./missing.get.parameters: parameter "x" in "nowhere" is left out; allowed: path, query, header, cookie, querystring',
      'paths./good.post: is not an operation; left out',
    ]);
  });

  it('[imp 1] repairs common errors in descriptions', () => {
    const get = {
      ...described,
      parameters: [
        header('Authorization'),
        header('Content-Type'),
        query('size', { ...integer, minimum: 0, exclusiveMinimum: true, default: 5 }),
        { name: 'gone', in: 'path', schema: text },
      ],
      requestBody: { content: { 'application/x-www-form-urlencoded': { schema: object({}) } } },
    };
    const plan = planDocument(
      openApi({ '/a/{id}//b': { get } }, { servers: [{ url: 'http://api.example.com//v1/' }] }),
    );
    const [planned] = plan.all;
    assert.deepEqual(planned?.tool, {
      name: 'list_a_b',
      description: described.summary,
      method: 'GET',
      url: '/a/:id/b',
      input_schema: {
        ...object({ id: text, size: { ...integer, description: 'Default: 5', exclusiveMinimum: 0 } }, ['id']),
        ...closed,
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
    const list = listOf(text);
    const fields = object({ a: text });
    const cases: [parameter: ReturnType<typeof query>, wire: string][] = [
      [query('r', list), 'r'],
      [query('c', list, { explode: false }), 'c comma'],
      [query('p', list, { style: 'pipeDelimited' }), 'p pipe'],
      [query('s', list, { style: 'spaceDelimited' }), 's space'],
      [query('ids[]', list), 'ids ids[]'],
      [query('deep', fields, { style: 'deepObject' }), 'deep deep'],
      [query('spread', fields), 'spread repeat'],
      [query('pairs', fields, { explode: false }), 'pairs comma'],
      [query('json', undefined, { schema: undefined, ...jsonBody(fields) }), 'json json'],
      [query('filter[status]'), 'filter_status filter[status]'],
      [query('$top', integer), 'top $top'],
      [query('StartTime>'), 'StartTime_gt StartTime>'],
      [header('X-Trace'), 'X-Trace header'],
    ];
    const constants = [
      header('Api-Version', { ...text, default: '2026-01-01' }, { required: true }),
      query('format', { enum: ['json:v1'] }, { required: true }),
    ];
    const parameters = [...cases.map(([parameter]) => parameter), ...constants];
    const tool = getOnlyTool(openApi({ '/x': { get: { ...described, parameters } } }));
    assert.deepEqual([tool.url, tool.headers], ['/x?format=json%3Av1', { 'Api-Version': '2026-01-01' }]);
    const wire = Object.entries(tool.input_schema).map(([name, definition]) => {
      const { style, wire_name, in: location } = definition as { [keyword: string]: unknown };
      return [name, style, wire_name, location].filter((part) => part !== undefined).join(' ');
    });
    assert.deepEqual(
      wire,
      cases.map(([, expected]) => expected),
    );
  });

  it('[imp 2] takes the body as one argument when its fields cannot be separate arguments', () => {
    const withBody = (schema: object, path = '/x', contents = ['application/json']) => {
      const content = Object.fromEntries(contents.map((type) => [type, { schema }]));
      return getOnlyTool(openApi({ [path]: { post: { ...described, requestBody: { required: true, content } } } }));
    };
    const withId = object({ id: text });
    assert.deepEqual(getArguments(withBody(withId)), ['id']);
    const clashing = withBody(withId, '/x/{id}');
    assert.deepEqual([getArguments(clashing), clashing.body], [['id', 'body'], 'body']);
    const manyFields = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`f${index}`, text]));
    for (const schema of [
      ...[listOf(withId), { ...withId, additionalProperties: true }, { oneOf: [withId, text] }, object(manyFields)],
    ])
      assert.deepEqual(getArguments(withBody(schema)), ['body'], JSON.stringify(schema));
    const bytes = withBody({ type: 'string', format: 'binary' }, '/x', ['image/png']);
    const file = { ...text, description: 'The bytes of the body, as Base64 or a data URL.', content: 'base64' };
    assert.deepEqual(
      [bytes.body, bytes.headers, bytes.input_schema],
      ['file', { 'Content-Type': 'image/png' }, { file }],
    );
    const patch = withBody(withId, '/x', ['application/json-patch+json', 'application/merge-patch+json']);
    assert.deepEqual(patch.headers, { 'Content-Type': 'application/merge-patch+json' });
  });

  it('[imp 3] reports what was loosened, what is missing, and why an operation was skipped', () => {
    const node = object({ name: { ...text, pattern: '^(?=a)' }, next: reference('Node') });
    const cases: [path: string, item: object, outcome: string][] = [
      ['/a', { post: { requestBody: jsonBody(reference('Node')) } }, 'POST /a: loosened; pattern; recursion'],
      ['/b', { get: { parameters: [cookie('my session')] } }, 'GET /b: partial; the cookie "my session"'],
      [
        '/c',
        { get: { parameters: [cookie('my session', text, { required: true })] } },
        'GET /c: skipped; the cookie "my session"',
      ],
      ['/d', { trace: {} }, 'TRACE /d: skipped; the method TRACE'],
      ['/e/{date}_PI.xml', { get: {} }, 'GET /e/{date}_PI.xml: skipped; a path parameter followed by a letter'],
      ['/f', { get: { requestBody: jsonBody(node, true) } }, 'GET /f: loosened; pattern; recursion'],
      ['/g', { get: { security: [{ certificate: [] }] } }, 'GET /g: skipped; credentials of type "mutualtls"'],
      ['/h/../i', { get: {} }, 'GET /h/../i: skipped; a path with . or .. segments'],
    ];
    const components = { schemas: { Node: node }, securitySchemes: { certificate: { type: 'mutualTLS' } } };
    const paths = Object.fromEntries(cases.map(([path, item]) => [path, item]));
    assert.deepEqual(
      listOutcomes(openApi(paths, { components })),
      cases.map(([, , outcome]) => outcome),
    );
  });

  it('[imp 2] compares credential names as receivers do, with parameters and with each other', () => {
    const apiKey = (where: string, name: string) => ({ type: 'apiKey', in: where, name });
    const securitySchemes = {
      dotted: apiKey('query', 'api.key'),
      lined: apiKey('query', 'API_KEY'),
      header: apiKey('header', 'X-Key'),
      same: apiKey('header', 'x_key'),
    };
    const get = { ...described, parameters: [query('api_key'), header('X.Key'), query('kept')] };
    const plan = (...names: string[]) => {
      const security = [Object.fromEntries(names.map((name) => [name, []]))];
      const document = openApi({ '/x': { get: { ...get, security } } }, { components: { securitySchemes } });
      return getValidConfig(planDocument(document));
    };
    assert.deepEqual(Object.keys(plan('dotted', 'header').tools[0]?.input_schema ?? {}), ['kept']);
    for (const { authentication } of [plan('dotted', 'lined'), plan('header', 'same')])
      assert.ok(!Array.isArray(authentication), JSON.stringify(authentication));
  });

  it('[imp 2] assigns a tool credential when the server credential is not enough, and none when the document requires none', () => {
    const get = (...security: object[]) => ({ get: { ...described, security } });
    const bearer = { type: 'http', scheme: 'bearer' };
    const authorizationCode = {
      authorizationUrl: 'https://login.example.com/authorize',
      tokenUrl: 'https://login.example.com/token',
      scopes: { read: 'reads' },
    };
    const securitySchemes = {
      ...{ api: bearer, 'admin-key': bearer },
      id: { type: 'apiKey', in: 'header', name: 'X-Id' },
      key: { type: 'apiKey', in: 'query', name: 'key' },
      login: { type: 'oauth2', flows: { authorizationCode } },
    };
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
      { components: { securitySchemes } },
    );
    const summarize = (include: string[], answers = {}) => {
      const plan = planDocument(document, { include, answers });
      const { authentication, credentials = {}, tools } = getValidConfig(plan);
      const named = tools.map(({ url, credential }) => (credential === undefined ? url : `${url} ${credential}`));
      return { authentication, credentials, named, secrets: pluck(plan.secrets, 'name'), all: plan.all };
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
    const choose = (...values: unknown[]) => ({ type: 'string', enum: values });
    const properties = {
      list: { type: 'array' },
      either: { oneOf: [{ ...text, pattern: 'x' }, { type: 'null' }] },
      kind: { oneOf: [choose('a'), choose('b')] },
      nested: object({ '@type': text, ok: text }, ['@type', 'ok']),
      day: { ...reference('Day'), nullable: true, description: 'The day.' },
      flag: choose(true, false),
    };
    const schemas = {
      Base: object({ id: { ...integer, format: 'int64', maximum: 2 ** 63 } }, ['id']),
      Day: choose('mon', 'tue'),
    };
    const requestBody = jsonBody({ allOf: [reference('Base'), object(properties)] });
    const tool = getOnlyTool(openApi({ '/x': { post: { ...described, requestBody } } }, { components: { schemas } }));
    assert.deepEqual(tool.input_schema, {
      ...object(
        {
          list: listOf({}),
          either: { type: ['string', 'null'], pattern: 'x' },
          kind: choose('a', 'b'),
          nested: { ...object({ ok: text }, ['ok']), description: 'Also takes @type (string, required)' },
          day: { type: ['string', 'null'], description: 'The day.', enum: ['mon', 'tue', null] },
          flag: choose('true', 'false'),
          id: integer,
        },
        ['id'],
      ),
      ...closed,
    });
  });

  it('[imp 2] accepts names that differ only in case or separators, and assigns separate secrets', () => {
    const key = (name: string) => ({ type: 'apiKey', in: 'header', name });
    const headers = ['X_Y', 'X-Y', 'x-y'].map((name) => header(name));
    const get = { ...described, parameters: headers, security: [{ 'X-Key': [], x_key: [] }] };
    const components = { securitySchemes: { 'X-Key': key('X-One'), x_key: key('X-Two') } };
    const config = getValidConfig(planDocument(openApi({ '/a': { get } }, { components })));
    assert.deepEqual(config.authentication, [
      { type: 'ApiKey', header: 'X-One', token: '{{X_KEY}}' },
      { type: 'ApiKey', header: 'X-Two', token: '{{X_KEY_2}}' },
    ]);
    assert.deepEqual(Object.keys(config.tools[0]?.input_schema ?? {}), ['X_Y']);
  });
});
