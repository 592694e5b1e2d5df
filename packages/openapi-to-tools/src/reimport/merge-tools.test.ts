import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../../../../test/sets.ts';
import {
  type ConfigTool,
  mergeTools,
  type ToolChange,
  type ToolConflict,
  type ToolsByOperation,
} from './merge-tools.ts';

type Fields = { [name: string]: unknown };

const words = fc.constantFrom('a', 'b', 'c', 'd', 'toString');
const text = fc.constantFrom('one', 'two', 'three', 'four');
const field = fc.record(
  { type: fc.constantFrom('string', 'integer'), description: text, enum: fc.array(text, { maxLength: 2 }) },
  { requiredKeys: ['type'] },
);
const fields = fc.record(
  {
    description: text,
    url: text,
    title: text,
    headers: fc.dictionary(words, text, { maxKeys: 3 }),
    input_schema: fc.dictionary(words, field, { maxKeys: 3 }),
  },
  { requiredKeys: ['description', 'url', 'input_schema'] },
);
const operations = ['GET /a', 'GET /b', 'POST /a', 'DELETE /a', 'GET /c'];
const generated = fc
  .subarray(operations)
  .chain((some) => fc.tuple(...some.map((operation) => fields.map((more) => [operation, more] as const))));

/** Returns the tools of a document, with names derived from the operations. */
function createTools(entries: readonly (readonly [string, Fields])[]): ToolsByOperation {
  return new Map(
    entries.map(([operation, more]) => [
      operation,
      { name: operation.replaceAll(/\W+/g, '_').toLowerCase(), imported_from: operation, ...more },
    ]),
  );
}

type Edit = { of: number; kind: 'replace' | 'remove' | 'rename' | 'disable'; more: Fields; name: string };
const edit: fc.Arbitrary<Edit> = fc.record({
  of: fc.nat(6),
  kind: fc.constantFrom('replace', 'remove', 'rename', 'disable'),
  more: fields,
  name: fc.constantFrom('mine', 'get_c', 'other'),
});

/** Returns the tools of a server after people have edited them. */
function applyEdits(before: ToolsByOperation, edits: readonly Edit[]): ConfigTool[] {
  const tools: ConfigTool[] = [...before.values()].map((tool) => structuredClone(tool));
  tools.push({ name: 'by_hand', description: 'Written by hand.', url: 'one' });
  for (const { of, kind, more, name } of edits) {
    const index = of % Math.max(1, tools.length);
    const tool = tools[index];
    if (!tool) continue;
    if (kind === 'remove') tools.splice(index, 1);
    if (kind === 'replace') tools[index] = { ...tool, ...structuredClone(more) };
    if (kind === 'disable') tools[index] = { ...tool, disabled: true };
    if (kind === 'rename' && !tools.some((other) => other.name === name)) tools[index] = { ...tool, name };
  }
  return tools;
}

/** Returns every value of a tool by path; an array counts as one value. */
function listLeaves(value: unknown, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map(value === undefined ? [] : [[path, JSON.stringify(value)]]);
  return new Map(Object.entries(value).flatMap(([name, entry]) => [...listLeaves(entry, `${path}/${name}`)]));
}

/** Returns true if a conflict of the operation covers this path. */
function hasConflictAt(conflicts: readonly ToolConflict[], operation: string, path: string): boolean {
  return conflicts.some(
    (conflict) => conflict.operation === operation && `${path}/`.startsWith(`/${conflict.path.replaceAll('.', '/')}/`),
  );
}

/** Returns true if a listed edit of the operation covers this path. */
function hasEditAt(edits: readonly ToolChange[], operation: string, path: string): boolean {
  return edits.some(
    (edit) =>
      edit.operation === operation &&
      edit.fields.some((listedField) => `${path}/`.startsWith(`/${listedField.path.replaceAll('.', '/')}/`)),
  );
}

const keepYours = { shouldAdd: () => false, moves: new Map(), choose: () => 'yours' as const };
const runs = { numRuns: getRunCount(2000) };
const cases = [generated, generated, fc.array(edit, { maxLength: 6 })] as const;

describe('merging of re-imported tools', () => {
  it('[imp 5] loses no edit, and updates every unedited value from the document', () => {
    fc.assert(
      fc.property(...cases, (first, second, edits) => {
        const before = createTools(first);
        const now = createTools(second);
        const yours = applyEdits(before, edits);
        const { tools, conflicts, edits: listedEdits } = mergeTools(yours, before, now, keepYours);
        for (const [index, mine] of yours.entries()) {
          const after = listLeaves(tools[index]);
          const operation = mine.imported_from;
          const theirs = operation === undefined ? undefined : now.get(operation);
          if (operation === undefined) {
            assert.deepEqual(tools[index], mine);
            continue;
          }
          if (!theirs) {
            assert.deepEqual(tools[index], { ...mine, disabled: true });
            continue;
          }
          const [a, b, c] = [listLeaves(before.get(operation) ?? {}), listLeaves(mine), listLeaves(theirs)];
          for (const path of new Set([...a.keys(), ...b.keys(), ...c.keys()])) {
            if (path === '/name') continue;
            const isEdited = a.get(path) !== b.get(path);
            if (isEdited) assert.equal(after.get(path), b.get(path), path);
            if (isEdited && b.get(path) !== c.get(path))
              assert.ok(
                hasConflictAt(conflicts, operation, path) || hasEditAt(listedEdits, operation, path),
                `${path} is reported`,
              );
            else if (!hasConflictAt(conflicts, operation, path)) assert.equal(after.get(path), c.get(path), path);
          }
        }
      }),
      runs,
    );
  });

  it('[imp 5] reports a conflict exactly where both sides changed a value differently', () => {
    fc.assert(
      fc.property(...cases, (first, second, edits) => {
        const before = createTools(first);
        const now = createTools(second);
        const yours = applyEdits(before, edits);
        const { conflicts } = mergeTools(yours, before, now, keepYours);
        const { tools: theirsTaken } = mergeTools(yours, before, now, { ...keepYours, choose: () => 'theirs' });
        for (const { tool, operation, path, yours: mine, theirs } of conflicts) {
          assert.notDeepEqual(mine, theirs);
          const index = yours.findIndex(({ name }) => name === tool);
          const at = path
            .split('.')
            .reduce<unknown>(
              (value, name) => (Object.hasOwn(value as Fields, name) ? (value as Fields)[name] : undefined),
              theirsTaken[index],
            );
          if (path !== 'name') assert.deepEqual(at, theirs, `${operation} ${path}`);
        }
        for (const mine of yours) {
          const operation = mine.imported_from ?? '';
          const theirs = now.get(operation);
          if (!theirs) continue;
          const [a, b, c] = [listLeaves(before.get(operation) ?? {}), listLeaves(mine), listLeaves(theirs)];
          for (const path of new Set([...b.keys(), ...c.keys()])) {
            const differ = new Set([a.get(path), b.get(path), c.get(path)]).size === 3;
            if (differ) assert.ok(hasConflictAt(conflicts, operation, path), path);
          }
        }
      }),
      runs,
    );
  });

  it('[imp 5] changes nothing if the document is unchanged or the merge is repeated', () => {
    fc.assert(
      fc.property(...cases, (first, second, edits) => {
        const before = createTools(first);
        const now = createTools(second);
        const yours = applyEdits(before, edits);
        const unchanged = mergeTools(yours, before, before, keepYours);
        assert.deepEqual(unchanged.tools, yours);
        assert.deepEqual([unchanged.changed, unchanged.conflicts, unchanged.added, unchanged.gone], [[], [], [], []]);
        const once = mergeTools(yours, before, now, { ...keepYours, shouldAdd: () => true });
        const twice = mergeTools(once.tools, now, now, { ...keepYours, shouldAdd: () => true });
        assert.deepEqual(twice.tools, once.tools);
        assert.deepEqual([twice.added, twice.conflicts], [[], []]);
      }),
      runs,
    );
  });

  it('[imp 5] keeps tool names unique, and offers new operations without adding them', () => {
    fc.assert(
      fc.property(...cases, fc.subarray(operations), (first, second, edits, chosen) => {
        const before = createTools(first);
        const now = createTools(second);
        const yours = applyEdits(before, edits);
        const merged = mergeTools(yours, before, now, {
          shouldAdd: (operation) => chosen.includes(operation),
          moves: new Map(),
          choose: () => 'theirs',
        });
        const names = merged.tools.map(({ name }) => name);
        assert.equal(new Set(names).size, names.length);
        const importedOperations = new Set(yours.map((tool) => tool.imported_from));
        const newOperations = [...now.keys()].filter((operation) => !importedOperations.has(operation));
        assert.equal(merged.added.length, newOperations.filter((operation) => chosen.includes(operation)).length);
        assert.deepEqual(
          merged.offered.map(({ operation }) => operation),
          newOperations.filter((operation) => !chosen.includes(operation)),
        );
      }),
      runs,
    );
  });
});
