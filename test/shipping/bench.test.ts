import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { getKnownInputs } from '../../bench/reports-inputs.ts';
import { buildRequests, readOperations } from '../../bench/reports-requests.ts';
import { buildFillStatements, scaleCounts } from '../../bench/reports-rows.ts';
import { fillStore } from '../../bench/reports-store.ts';

const upstream = 'http://127.0.0.1:9';

describe('the report benchmark', () => {
  const world = scaleCounts(0.00001, Date.now());

  it('fills every table of its data set without an error', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));
    const store = await fillStore('sqlite', folder, world, await buildFillStatements(world, upstream));
    await store.stop();
    rmSync(folder, { recursive: true });
  });

  it('has a value for each input of every reading operation', () => {
    const requests = readOperations.flatMap((op) => buildRequests(op, getKnownInputs(world, upstream)));
    assert.ok(requests.length > readOperations.length);
  });
});
