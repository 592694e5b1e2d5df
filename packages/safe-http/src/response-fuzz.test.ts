/**
 * Sends generated exchanges, 50,000 each night. `FUZZ_EXCHANGES` sets their number and `TEST_SEED` repeats a run. A run of a
 * million has no time limit when node runs the file itself:
 * `FUZZ_EXCHANGES=1000000 node packages/safe-http/src/response-fuzz.test.ts`.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getRunCount } from '../../../test/sets.ts';
import { compareGenerated } from '../../../test/support/responses/compare-generated.ts';
import { type IsolationRun, runIsolationSession } from '../../../test/support/responses/isolation-session.ts';
import { startScriptedUpstream } from '../../../test/support/responses/scripted-upstream.ts';
import { createRandomInt, seed } from '../../../test/support/seeded-numbers.ts';
import { createTestClient } from '../../../test/support/upstreams/http-client.ts';
import { useFixtures } from '../../../test/support/use-fixtures.ts';

const exchanges = Number(process.env.FUZZ_EXCHANGES ?? getRunCount(50_000));
/** Share of the exchanges that are compared with undici. They cost several times as much as the others. */
const comparedShare = 0.1;
/** Sessions, or comparisons, that run simultaneously. */
const concurrency = 32;
/** Number of failures that are printed. */
const maxPrinted = 10;
/** Longer than the quiet period of a connection. */
const afterQuietPeriodMs = 60;
/** Longer than the time for which an upstream that sent unsolicited bytes is remembered. */
const afterDistrustMs = 11 * 60_000;

/** Runs tasks with own random numbers, which the seed and their number determine. */
async function runSimultaneously(run: (randomInt: (bound: number) => number) => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from({ length: concurrency }, (_, number) => run(createRandomInt(seed + number * 0x9e3779b9))),
  );
}

describe('the HTTP client, for generated responses', () => {
  let aheadMs = 0;
  const fixtures = useFixtures();
  const upstream = fixtures.start(startScriptedUpstream);
  const http = fixtures.start(async () =>
    createTestClient(`127.0.0.1:${upstream.port}`, { clock: () => performance.now() + aheadMs }),
  );

  it('[find B2] [sec M1] gives each caller the response to its own request, whatever else upstreams send', async () => {
    const run: IsolationRun = {
      upstream,
      http,
      endQuietPeriods: () => {
        aheadMs += afterQuietPeriodMs;
      },
      forgetUnsolicited: () => {
        aheadMs += afterDistrustMs;
      },
      remaining: Math.ceil(exchanges * (1 - comparedShare)),
      next: 0,
      callers: new WeakMap(),
      mismatches: [],
    };
    await runSimultaneously(async (randomInt) => {
      while (run.remaining > 0) await runIsolationSession(run, randomInt);
    });
    assert.deepEqual(run.mismatches.slice(0, maxPrinted), [], `TEST_SEED=${seed}`);
    assert.ok(http.getLoad().unsolicited > exchanges / 1000, 'too few unsolicited bytes were sent');
  });

  it('differs from undici only for listed reasons', async () => {
    let remaining = Math.ceil(exchanges * comparedShare);
    const differences: unknown[] = [];
    await runSimultaneously(async (randomInt) => {
      while (remaining-- > 0) {
        const difference = await compareGenerated(upstream, http, randomInt);
        if (difference) differences.push(difference);
      }
    });
    assert.deepEqual(differences.slice(0, maxPrinted), [], `TEST_SEED=${seed}`);
  });
});
