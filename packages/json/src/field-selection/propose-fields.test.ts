import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseDotPath } from '@toolhost/errors/dot-path';
import { ToolFailure } from '@toolhost/errors/errors';
import fc from 'fast-check';
import { getRunCount } from '../../../../test/sets.ts';
import { assertNone } from '../../../../test/support/assert-lists.ts';
import { buildFieldTree, selectFields } from '../response-fields.ts';
import { type FieldStats, mergeStats } from './field-statistics.ts';
import { measureFields } from './measure-fields.ts';
import { getKeptBytes, proposeFields } from './propose-fields.ts';

const names = ['a', 'b', 'id', 'html_url', 'self_url', 'é"\\', 'a.b', ' x', '', '_links', 'avatar'];
const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, '', true, 7, 'text "quoted" é', 'https://api.example.com/1', 1.5),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 5 }),
  ),
})).value;

const listPaths = (stats: FieldStats, parent = ''): string[] =>
  stats.fields.flatMap((field) => {
    const path = parent === '' ? field.name : `${parent}.${field.name}`;
    return [path, ...listPaths(field, path)];
  });
const countObjects = (stats: FieldStats): number =>
  stats.objects + stats.fields.reduce((sum, one) => sum + countObjects(one), 0);
const toJsonBuffer = (response: unknown) => Buffer.from(JSON.stringify(response));
const selectPaths = (json: Buffer, paths: readonly string[]) =>
  selectFields(json, buildFieldTree(paths.map(parseDotPath)));
const measureAll = (responses: readonly unknown[]) =>
  mergeStats(responses.map((response) => measureFields(response))) ?? assert.fail('no answers');

const repository = (id: number) => ({
  id,
  node_id: `R_${id}`,
  name: `repository ${id}`,
  owner: { login: 'o', avatar_url: 'https://a.example/1', url: 'https://api.example/1', html_url: `https://x/${id}` },
  html_url: `https://github.example/${id}`,
  url: `https://api.example/repos/${id}`,
  forks_url: `https://api.example/repos/${id}/forks`,
  license: null,
  visibility: 'public',
  topics: id % 2 ? ['x'] : [],
  permissions: { admin: id > 3, pull: id > 1 },
  _links: { self: { href: `https://api.example/${id}` } },
});

/** Returns the size of a response after selecting fields; undefined if it has none of them. */
function getSelectedSize(response: Buffer, paths: readonly string[]): number | undefined {
  try {
    return selectPaths(response, paths).length;
  } catch (error) {
    if (error instanceof ToolFailure) return undefined;
    throw error;
  }
}

describe('response field proposal', () => {
  it('[agent 3] predicts the size of a field selection to one byte per object', () => {
    fc.assert(
      fc.property(
        fc.array(anyValue, { minLength: 1, maxLength: 3 }),
        fc.infiniteStream(fc.boolean()),
        (responses, choices) => {
          const stats = measureAll(responses);
          const totalBytes = responses.reduce<number>((sum, response) => sum + toJsonBuffer(response).length, 0);
          assert.equal(stats.bytes, totalBytes);
          const paths = listPaths(stats).filter(() => choices.next().value);
          // Fields cannot be selected from a single value.
          if (paths.length === 0 || stats.isPartial) return;
          const sizes = responses.map((response) => getSelectedSize(toJsonBuffer(response), paths));
          // Selecting fields that a response does not have is an error.
          if (sizes.includes(undefined)) return;
          const selectedBytes = sizes.reduce<number>((sum, size) => sum + Number(size), 0);
          const predictedBytes = getKeptBytes(stats, paths);
          assert.ok(
            Math.abs(predictedBytes - selectedBytes) <= countObjects(stats),
            `predicted ${predictedBytes}, found ${selectedBytes}`,
          );
        },
      ),
      { numRuns: getRunCount(2000) },
    );
  });

  it('[agent 3] names only existing fields, and drops only values that it classifies as useless', () => {
    fc.assert(
      fc.property(
        fc.array(anyValue, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 5 }),
        (responses, maxFields) => {
          const stats = measureAll(responses);
          const paths = proposeFields(stats, maxFields);
          if (!paths) return;
          assert.ok(paths.length > 0 && paths.length <= maxFields);
          const knownPaths = new Set(listPaths(stats));
          assertNone(paths, (path) => !knownPaths.has(path));
          assert.ok(getKeptBytes(stats, paths) <= stats.bytes + countObjects(stats));
        },
      ),
      { numRuns: getRunCount(1000) },
    );
  });

  it('[agent 3] omits links, node IDs, pictures, nulls, and constants, and keeps links for people', () => {
    const stats = measureAll([[1, 2, 3].map(repository), [4, 5, 6].map(repository)]);
    assert.deepEqual(proposeFields(stats, 100), ['id', 'name', 'owner.html_url', 'html_url', 'topics', 'permissions']);
  });

  it('[agent 3] does not classify values of a single response with a single object as constant', () => {
    const paths = proposeFields(measureAll([repository(1)]), 100);
    assert.ok(paths?.includes('license') && paths.includes('visibility') && !paths.includes('forks_url'));
  });

  it('[agent 3] keeps maps by ID, very wide objects, and deep objects as a whole', () => {
    const byId = Object.fromEntries(Array.from({ length: 400 }, (_, id) => [`u${id}`, { name: 'n', node_id: 'x' }]));
    const stats = measureAll([{ users: byId, node_id: 'x', count: 1 }]);
    assert.deepEqual(proposeFields(stats, 100), ['users', 'count']);
    const deep = Array.from({ length: 40 }).reduce<unknown>((inner) => ({ inner, node_id: 'x' }), 1);
    const paths = proposeFields(measureAll([{ deep, node_id: 'x' }]), 100) ?? assert.fail();
    assert.match(selectPaths(toJsonBuffer({ deep }), paths).toString(), /"inner":1/);
    const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, id) => [`f${id}`, id]));
    assert.equal(proposeFields(measureAll([{ ...wide, node_id: 'x' }]), 100), undefined);
  });

  it('[agent 3] is absent for a response without fields', () => {
    for (const response of [1, 'x', [], [1, 2], {}, [{}], { a: 1 }]) {
      assert.equal(proposeFields(measureAll([response]), 100), undefined);
    }
  });
});
