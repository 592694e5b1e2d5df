import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { knownOf } from '../../bench/reports-known.ts';
import { readingOperations, requestsOf } from '../../bench/reports-requests.ts';
import { fillStatements, worldOf } from '../../bench/reports-rows.ts';
import { fillStore } from '../../bench/reports-store.ts';

const upstream = 'http://127.0.0.1:9';

describe('the report benchmark', () => {
  const world = worldOf(0.00001, Date.now());

  it('fills every table of its data set without an error', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));
    const store = await fillStore('sqlite', folder, world, await fillStatements(world, upstream));
    await store.stop();
    rmSync(folder, { recursive: true });
  });

  it('has a value for each input of every reading operation', () => {
    const requests = readingOperations.flatMap((op) => requestsOf(op, knownOf(world, upstream)));
    assert.ok(requests.length > readingOperations.length);
  });
});
