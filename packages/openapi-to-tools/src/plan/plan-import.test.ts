import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getValidConfig, openApi, planDocument } from '../../../../test/support/import/import-plans.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import { jsonBody, object, query, text } from '../../../../test/support/schemas.ts';
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
const resources =
  'admin-user permission-scheme webhook announcement-banner token custom-setting emoji user macro ticket';
const desk = openApi({
  ...Object.assign({}, ...resources.split(' ').map((name) => createResource(name))),
  '/tickets/{id}/comments': { get: { summary: 'List comments', responses }, post: { summary: 'Add one', responses } },
  '/tickets/{id}/merge': { post: { summary: 'Merge tickets', responses } },
  '/search': { get: { summary: 'Search tickets, users and macros', responses } },
  '/users/me': { get: { summary: 'The current user', responses } },
  '/tickets/{id}/legacy-notes': { get: { summary: 'Notes', responses } },
});
const getProposal = (choices: Parameters<typeof planDocument>[1]) => planDocument(desk, choices).proposal.include;

describe('import proposal', () => {
  it('[imp 3] ranks the main resources of an API first, and administration last', () => {
    const all = getProposal({});
    assert.equal(all.length, 40);
    const tickets = ['GET /tickets', 'GET /tickets/{id}', 'POST /tickets', 'PATCH /tickets/{id}'];
    assert.deepEqual(new Set(all.slice(0, 4)), new Set(tickets));
    for (const name of [
      ...['GET /search', 'GET /tickets/{id}/comments', 'POST /tickets/{id}/comments'],
      ...['GET /users/me', 'PATCH /users/{id}'],
    ])
      assert.ok(all.indexOf(name) >= 0 && all.indexOf(name) < 20, `${name}: ${all.join()}`);
    const administration = /admin|scheme|webhook|banner|token|setting|emoji|legacy/;
    assert.deepEqual(
      all.slice(0, 19).filter((name) => administration.test(name)),
      [],
    );
    assert.equal(planDocument(desk, {}).config?.tools.length, 40);
  });

  it('[imp 3] follows a sentence that says what agents should do', () => {
    const found = getProposal({ for: 'add comments to a ticket' });
    assert.ok(found.slice(0, 4).includes('POST /tickets/{id}/comments'), found.join());
    assert.ok(!found.includes('GET /emojis'), found.join());
    const { chosen } = planDocument(desk, { for: 'tickets', readOnly: true });
    assert.deepEqual(new Set(chosen.map(({ operation }) => operation.method)), new Set(['GET']));
    assert.match(planDocument(desk, { for: 'xyzzy' }).proposal.reason, /^no operation matches the sentence, so /);
  });
});

describe('imported tool', () => {
  const description = 'Says something about this field that takes a good part of the list of tools, as real ones do. ';
  const field = { ...object({ inner: { ...text, description } }), description };
  const fields = Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`field_${index}`, field]));

  it('[imp 2] keeps the small fields of a large schema, names the others in the description, and can send all of them', () => {
    const schema = { ...object({ title: text, ...fields }, ['field_1']), additionalProperties: false };
    const post = (type: string) => ({
      post: { summary: 'Make one of these things', requestBody: { content: { [type]: { schema } } }, responses },
    });
    const plan = planDocument(
      openApi({ '/a': post('application/json'), '/b': post('application/x-www-form-urlencoded') }),
    );
    const [json, form] = pluck(getValidConfig(plan).tools, 'input_schema') as Json[];
    const body = ((json?.properties ?? json) as Json).body as Json;
    const shownProperties = body.properties as Json;
    assert.ok(shownProperties.title && shownProperties.field_1, JSON.stringify(body));
    assert.equal(body.additionalProperties, undefined);
    assert.match(String(body.description), /Also takes field_\d+, .*field_\d+\.$/);
    const inner = { ...text, description: description.trim() };
    assert.deepEqual((shownProperties.field_1 as Json).properties, { inner });
    const fieldsArgument = ((form?.properties ?? form) as Json).fields as Json;
    assert.match(String(fieldsArgument.description), /Also takes field_\d+, .*field\[inner\]/);
    for (const planned of plan.all) assert.ok(planned.tokens <= 800, `${planned.tokens}`);
    const notes = new Set(plan.all.flatMap((one) => one.notes.map((note) => note.replace(/: .*/, ''))));
    assert.deepEqual([...notes], ['additionalProperties', 'fields that are only named']);
  });

  it('[imp 2] explains how to get the next page if the description shows it', () => {
    const list = (names: string[], answer: string[], type = 'integer') => {
      const parameters = names.map((name) => query(name, { type: /cursor|after/.test(name) ? 'string' : type }));
      const response = jsonBody(object(Object.fromEntries(answer.map((name) => [name, text]))));
      return {
        get: { summary: 'List all of the things', parameters, responses: { 200: { description: 'ok', ...response } } },
      };
    };
    const cases: [list: Json, next: string | undefined, headers?: string[]][] = [
      [list(['cursor'], ['items', 'next_cursor']), 'For the next page pass next_cursor of the result as cursor.'],
      [list(['starting_after'], ['has_more']), 'For the next page pass the id of the last item as starting_after.'],
      [list(['offset', 'limit'], []), 'For the next page raise offset by the number of items.'],
      [list(['page', 'per_page'], []), 'For the next page raise page by 1.', ['Link']],
      [list(['offset', 'limit'], [], 'string'), undefined],
      [list(['limit'], []), undefined],
    ];
    for (const [item, next, headers] of cases) {
      const [tool] = getValidConfig(planDocument(openApi({ '/things': item }))).tools;
      assert.deepEqual(
        [/For the next page.*/.exec(tool?.description ?? '')?.[0], tool?.response_headers],
        [next, headers],
      );
    }
  });

  it('[imp 2] has descriptions that end with a complete sentence, and no references to missing text', () => {
    const texts = [
      'The kind of the thing. Supported values are:\n\n* one\n\n* two',
      'Supported values are:',
      `The kind of the thing, e.g. one of some other sort. ${'And more of it '.repeat(10)}`,
    ];
    const get = {
      summary: 'List all of the things',
      parameters: texts.map((description, index) => query(`p${index}`, text, { description })),
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
