import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configWith, oauth, toolWith } from '../support/configurations.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

type Path = readonly (string | number)[];

/** Where the values stand that are not made of others. */
function leaves(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const parts: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return parts.flatMap(([part, inner]) => leaves(inner, [...path, part]));
}

function withValue(config: Json, path: Path, value: unknown): Json {
  const copy = structuredClone(config);
  let at = copy as Record<string | number, unknown>;
  for (const part of path.slice(0, -1)) at = at[part] as Record<string | number, unknown>;
  at[path.at(-1) ?? ''] = value;
  return copy;
}

const whole = toolWith({
  title: 'Things',
  headers: { Accept: 'text/plain' },
  input_schema: { id: { type: 'string', description: 'Which', format: 'uuid', in: 'query' } },
  response_transform: 'data',
  timeout_ms: 500,
  array_format: 'repeat',
  response_fields: ['name'],
  body: 'json',
  method: 'POST',
});
const login = configWith({
  authentication: { type: 'Bearer', header: 'X-Token' },
  oauth: { ...oauth, scopes: ['read'], token_mode: 'issued', extra_params: { prompt: 'consent' } },
});
const stored = configWith({ description: 'All', authentication: { type: 'ApiKey', token: '{{KEY}}' }, tools: [whole] });
const wrong = ['', ' ', 7, true, null, [], {}, 'x'.repeat(5000), 'http://[', '\u0001'];

describe('one fault of a configuration', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost?.stop());

  it('[find D1] has one line, whatever a field holds', async () => {
    const twice: string[] = [];
    for (const config of [stored, login]) {
      for (const path of leaves(config)) {
        for (const value of wrong) {
          const { body, status, text } = await toolhost.rest('POST', '/check', {
            body: withValue(config, path, value),
          });
          assert.equal(status, 200, text);
          const paths = (body.problems as { path: string }[]).map((problem) => problem.path);
          if (new Set(paths).size < paths.length) twice.push(`${path.join('.')} ${JSON.stringify(body.problems)}`);
        }
      }
    }
    assert.deepEqual(twice, []);
  });
});
