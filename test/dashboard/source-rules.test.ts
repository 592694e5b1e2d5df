import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { operationList, operatorOperations } from '@toolhost/server/operations';
import { formatOperation } from '../../apps/dashboard/src/audit/operation-text.ts';
import { assertNone } from '../support/assert-lists.ts';

const root = resolve(import.meta.dirname, '..', '..', 'apps', 'dashboard', 'src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name));
const readSource = (name: string) => readFileSync(join(root, name), 'utf8');
const findFiles = (pattern: RegExp) => files.filter((name) => pattern.test(readSource(name))).sort();

describe('the source code of the dashboard', () => {
  it('[find D1] keeps a previous response only in files that match it to its request', () => {
    assert.deepEqual(findFiles(/keepPreviousData/), [
      'frame/palette.tsx',
      'servers/editor/model/use-verdict.ts',
      'servers/home/duplicate.tsx',
      'servers/try/outgoing-request.tsx',
    ]);
  });

  it('[find D2] handles blur only through functions that wait for the pointer', () => {
    const handlers = files.flatMap((name) =>
      [...readSource(name).matchAll(/onBlur=\{(.*)\}$/gm)].map(([, handler = '']) => ({ name, handler })),
    );
    const allowed = /^(\w+\.touch|leave|onBlur|\(\) => beforeClick\(.*\))$/;
    assertNone(handlers, ({ handler }) => !allowed.test(handler));
    assert.ok(handlers.length > 5);
    assert.deepEqual(findFiles(/\bTagsInput\b[^;]*from '@mantine\/core'/), ['ui/tags-input.tsx']);
  });

  it('has a text for every operation in the audit', () => {
    const audited = [...operationList, ...Object.values(operatorOperations)].filter(({ effect }) => effect === 'write');
    assertNone(
      audited.map(({ name }) => name),
      (name) => !/^[A-Z]/.test(formatOperation(name)),
    );
    assert.ok(audited.length > 20);
  });

  it('uses one component for two-column layouts', () => {
    assert.deepEqual(findFiles(/<SimpleGrid\b[^>]*\b(xs|sm): 2 \}\} spacing="sm"|\[from\]: 2/), ['ui/two-columns.tsx']);
  });
});
