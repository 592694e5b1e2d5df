import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { check, configWith, toolWith } from '../support/configurations.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Mostly what is right, and sometimes what people write who know URI templates, OpenAPI, shells and other tools. */
const mostly = (right: readonly string[], wrong: readonly string[]) =>
  fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...right) }, { weight: 1, arbitrary: fc.constantFrom(...wrong) });

const segment = mostly(
  ['things', ':id', '{{KEY}}', '{{TEAM}}', 'v:id', 'x:cancel', ':id.json', '{{OTHER}}'],
  ['{id}', '<id>', '{+id}', '{id=a/*}', 'items-{id}', ':other', '{other}'],
);
const pair = mostly(
  ['a=:id', 'a=eq.:id', 'a={{KEY}}', 'a={{TEAM}}.:id', 'a'],
  ['a={id}', 'a=<id>', '{id}=1', ':id=1', 'a=:other', 'a={id*}'],
);
const header = mostly(['plain', '{{KEY}}', 'team {{TEAM}}', '12:30'], [':id', 'v=:id', '{id}', 'Bearer {id}']);
const definition = fc
  .record(
    {
      type: fc.constant('string'),
      optional: fc.boolean(),
      default: mostly(['first', 'Dear {{name}}'], ['{{KEY}}']),
      in: fc.constantFrom('query', 'header'),
    },
    { requiredKeys: ['type'] },
  )
  .map((fields): Json => fields);
const schema = fc.oneof(
  definition.map((id): Json => ({ id })),
  fc
    .tuple(definition, fc.constantFrom(['id'], ['id'], ['id', 'other'], []))
    .map(([{ optional: _, ...id }, required]): Json => {
      return { type: 'object', properties: { id }, required };
    }),
);
const tool = fc
  .record({
    path: fc.array(segment, { maxLength: 3 }),
    query: fc.array(pair, { maxLength: 2 }),
    headers: fc.array(header, { maxLength: 1 }),
    input_schema: schema,
    method: fc.constantFrom('GET', 'POST'),
  })
  .map(({ path, query, headers, ...rest }): Json => {
    const search = query.length > 0 ? `?${query.join('&')}` : '';
    const url = `https://api.example.com/${path.join('/')}${search}`;
    return toolWith({ ...rest, url, headers: Object.fromEntries(headers.map((value) => ['X-Given', value])) });
  });

type Preview = { url: string; headers: [string, string][]; body?: string };

describe('a configuration without a problem', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
    await toolhost.createServer(configWith({ slug: 'judged' }));
    for (const name of ['KEY', 'OTHER']) {
      await toolhost.rest('PUT', `/servers/judged/secrets/${name}`, { body: { value: 'filled' } });
    }
  });
  after(() => toolhost.stop());

  it('[conf 6] sends nothing as it stands that its author meant to be filled', async () => {
    let valid = 0;
    await fc.assert(
      fc.asyncProperty(tool, async (written) => {
        const config = configWith({ slug: 'judged', tools: [written], variables: { TEAM: { value: 'blue' } } });
        const judged = await check(toolhost, config);
        const stored = await toolhost.rest('PUT', '/servers/judged', { body: config });
        assert.equal(stored.status, judged.valid ? 200 : 400, stored.text);
        if (!judged.valid) return;
        valid++;
        const path = '/servers/judged/tools/get_thing/preview';
        const { body, text, status } = await toolhost.rest('POST', path, { body: { arguments: { id: 'VALUE' } } });
        assert.equal(status, 200, text);
        const request = body.request as Preview;
        const sent = [request.url, ...request.headers.map(([, value]) => value), request.body ?? ''];
        const literal = /\{\{?\+?[A-Za-z]|<id>|%7B|%3C|(?<![A-Za-z0-9"]):id\b/i;
        // A body is JSON, whose braces are its own.
        for (const part of sent) assert.doesNotMatch(part.replace(/^\{"\w+":/, ''), literal, JSON.stringify(written));
        const named = String(JSON.stringify(sent).match(/VALUE/g)?.length ?? 0);
        assert.notEqual(named, '0', `the argument is sent: ${JSON.stringify(written)}`);
      }),
      { numRuns: 150, seed: 6 },
    );
    assert.ok(valid > 25, `${valid} valid ones`);
  });
});
