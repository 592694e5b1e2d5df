import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getValidConfig, openApi, planDocument } from '../../../../test/support/import/import-plans.ts';
import type { Json } from '../../../../test/support/toolhost/toolhost.ts';

const responses = { 200: { description: 'ok' } };

/** Returns operations that list, create, read, change, and delete one resource. */
function createResource(name: string, tag = name): Json {
  const at = (summary: string) => ({ summary: `${summary} ${name}`, tags: [tag], responses });
  return {
    [`/${name}s`]: { get: at('List'), post: at('Create') },
    [`/${name}s/{id}`]: { get: at('Get'), patch: at('Update'), delete: at('Delete') },
  };
}

/** A help desk API. Administration comes first in the document, but tickets are its main resource. */
const desk = openApi({
  ...createResource('admin-user'),
  ...createResource('permission-scheme'),
  ...createResource('webhook'),
  ...createResource('announcement-banner'),
  ...createResource('token'),
  ...createResource('custom-setting'),
  ...createResource('emoji'),
  ...createResource('user'),
  ...createResource('macro'),
  ...createResource('ticket'),
  '/tickets/{id}/comments': { get: { summary: 'List comments', responses }, post: { summary: 'Add one', responses } },
  '/tickets/{id}/merge': { post: { summary: 'Merge tickets', responses } },
  '/search': { get: { summary: 'Search tickets, users and macros', responses } },
  '/users/me': { get: { summary: 'The current user', responses } },
  '/tickets/{id}/legacy-notes': { get: { summary: 'Notes', responses } },
});

function getProposal(choices: Parameters<typeof planDocument>[1]): string[] {
  return planDocument(desk, choices).proposal.include;
}

describe('import proposal', () => {
  it('[imp 3] ranks the main resources of an API first, and administration last', () => {
    const all = getProposal({});
    assert.equal(all.length, 40);
    const tickets = ['GET /tickets', 'GET /tickets/{id}', 'POST /tickets', 'PATCH /tickets/{id}'];
    assert.deepEqual(new Set(all.slice(0, 4)), new Set(tickets));
    const expectedEarly = [
      'GET /search',
      'GET /tickets/{id}/comments',
      'POST /tickets/{id}/comments',
      'GET /users/me',
      'PATCH /users/{id}',
    ];
    for (const name of expectedEarly)
      assert.ok(all.indexOf(name) >= 0 && all.indexOf(name) < 20, `${name}: ${all.join()}`);
    const earlyAdministration = all
      .slice(0, 19)
      .filter((name) => /admin|scheme|webhook|banner|token|setting|emoji|legacy/.test(name));
    assert.deepEqual(earlyAdministration, []);
    const { config } = planDocument(desk, {});
    assert.equal(config?.tools.length, 40);
  });

  it('[imp 3] follows a sentence that says what agents should do', () => {
    const found = getProposal({ for: 'add comments to a ticket' });
    assert.ok(found.slice(0, 4).includes('POST /tickets/{id}/comments'), found.join());
    assert.ok(!found.includes('GET /emojis'), found.join());
    const readOnlyPlan = planDocument(desk, { for: 'tickets', readOnly: true });
    assert.ok(
      readOnlyPlan.chosen.length > 0 && readOnlyPlan.chosen.every(({ operation }) => operation.method === 'GET'),
    );
    assert.match(planDocument(desk, { for: 'xyzzy' }).proposal.reason, /^no operation matches the sentence, so /);
  });
});

describe('imported tool', () => {
  const longDescription =
    'Says something about this field that takes a good part of the list of tools, as real ones do. ';
  const fields = (count: number): Json =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `field_${index}`,
        {
          type: 'object',
          description: longDescription,
          properties: { inner: { type: 'string', description: longDescription } },
        },
      ]),
    );

  it('[imp 2] keeps the small fields of a large schema, names the others in the description, and can send all of them', () => {
    const schema = {
      type: 'object',
      required: ['field_1'],
      properties: { title: { type: 'string' }, ...fields(14) },
      additionalProperties: false,
    };
    const post = (type: string) => ({
      post: { summary: 'Make one of these things', requestBody: { content: { [type]: { schema } } }, responses },
    });
    const plan = planDocument(
      openApi({ '/a': post('application/json'), '/b': post('application/x-www-form-urlencoded') }),
    );
    const [json, form] = getValidConfig(plan).tools.map(({ input_schema }) => input_schema as Json);
    const body = ((json?.properties ?? json) as Json).body as Json;
    const shownProperties = body.properties as Json;
    assert.ok(shownProperties.title && shownProperties.field_1, JSON.stringify(body));
    assert.equal(body.additionalProperties, undefined);
    assert.match(String(body.description), /Also takes field_\d+, .*field_\d+\.$/);
    assert.deepEqual((shownProperties.field_1 as Json).properties, {
      inner: { type: 'string', description: longDescription.trim() },
    });
    const fieldsArgument = ((form?.properties ?? form) as Json).fields as Json;
    assert.match(String(fieldsArgument.description), /Also takes field_\d+, .*field\[inner\]/);
    for (const planned of plan.all) assert.ok(planned.tokens <= 800, `${planned.tokens}`);
    assert.deepEqual(
      [...new Set(plan.all.flatMap(({ notes }) => notes.map((note) => note.replace(/: .*/, ''))))],
      ['additionalProperties', 'fields that are only named'],
    );
  });

  it('[imp 2] explains how to get the next page if the description shows it', () => {
    const createListOperation = (names: string[], answer: string[], type = 'integer') => ({
      get: {
        summary: 'List all of the things',
        parameters: names.map((name) => ({
          name,
          in: 'query',
          schema: { type: /cursor|after/.test(name) ? 'string' : type },
        })),
        responses: {
          200: {
            description: 'ok',
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: Object.fromEntries(answer.map((name) => [name, { type: 'string' }])),
                },
              },
            },
          },
        },
      },
    });
    const paths = {
      '/a': createListOperation(['cursor'], ['items', 'next_cursor']),
      '/b': createListOperation(['starting_after'], ['has_more']),
      '/c': createListOperation(['offset', 'limit'], []),
      '/d': createListOperation(['page', 'per_page'], []),
      '/e': createListOperation(['offset', 'limit'], [], 'string'),
      '/f': createListOperation(['limit'], []),
    };
    const { tools } = getValidConfig(planDocument(openApi(paths)));
    assert.deepEqual(
      tools.map(({ description, response_headers }) => [
        /For the next page.*/.exec(description)?.[0],
        response_headers,
      ]),
      [
        ['For the next page pass next_cursor of the result as cursor.', undefined],
        ['For the next page pass the id of the last item as starting_after.', undefined],
        ['For the next page raise offset by the number of items.', undefined],
        ['For the next page raise page by 1.', ['Link']],
        [undefined, undefined],
        [undefined, undefined],
      ],
    );
  });

  it('[imp 2] has descriptions that end with a complete sentence, and no references to missing text', () => {
    const texts = [
      'The kind of the thing. Supported values are:\n\n* one\n\n* two',
      'Supported values are:',
      `The kind of the thing, e.g. one of some other sort. ${'And more of it '.repeat(10)}`,
    ];
    const get = {
      summary: 'List all of the things',
      parameters: texts.map((description, index) => ({
        name: `p${index}`,
        in: 'query',
        description,
        schema: { type: 'string' },
      })),
      responses,
    };
    const [tool] = getValidConfig(planDocument(openApi({ '/things': { get } }))).tools;
    const found = Object.values(tool?.input_schema as Json).map((field) => (field as Json).description);
    assert.deepEqual(found, [
      'The kind of the thing. Supported values are: * one',
      undefined,
      'The kind of the thing, e.g. one of some other sort.',
    ]);
  });
});
