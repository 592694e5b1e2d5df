/**
 * Defines the two sets of tests. `npm test` runs the tests that every change must pass: at least one test for each rule
 * of `requirements.ts`, every operation on one engine, and the shared queries on both. `npm run test:all` runs all tests.
 */
import type { Engine } from '../apps/server/src/store/db.ts';

/** True if all tests run. */
export const isFullSuite = process.env.TEST_SET === 'all';

/** Files and folders (with a trailing slash) that only `npm run test:all` runs, relative to the repository. */
const fullSuiteOnly: readonly string[] = [
  'test/cli/completion-shells.test.ts',
  'test/cli/doctor-problems.test.ts',
  'test/cli/doctor-login.test.ts',
  'test/cli/doctor-people-login.test.ts',
  'test/cli/login-details.test.ts',
  'test/cli/login-renewal.test.ts',
  'test/cli/follow-records.test.ts',
  'test/cli/seed.test.ts',
  'test/cli/streams.test.ts',
  'test/clients/agents/',
  'test/clients/people-login.test.ts',
  'test/dashboard/details/',
  'test/edge/file-descriptors.test.ts',
  'test/faults/',
  'test/gateway/client-credentials-replicas.test.ts',
  'test/gateway/evicted-remainders.test.ts',
  'test/gateway/search-quality.test.ts',
  'test/import-audit/import-audit.test.ts',
  'test/import/corpus.test.ts',
  'test/import/import-limits.test.ts',
  'test/limits/limits-command.test.ts',
  'test/limits/generated-tokens.test.ts',
  'apps/server/src/gateway/callers/resolve-caller.test.ts',
  'apps/server/src/gateway/limits/quota-reservations.test.ts',
  'test/limits/thread-shares.test.ts',
  'test/oauth/chromium.test.ts',
  'test/oauth/conformance.test.ts',
  'test/oauth/endless-provider-response.test.ts',
  'test/oauth/failing-tables.test.ts',
  'test/oauth/forged-sealed-values.test.ts',
  'test/oauth/login-forms.test.ts',
  'test/oauth/login-storage-limit.test.ts',
  'test/oauth/invalid-callback-codes.test.ts',
  'test/oauth/database-outage.test.ts',
  'test/oauth/cached-logins.test.ts',
  'test/oauth/provider-timeouts.test.ts',
  'test/operations/blocked-database.test.ts',
  'test/operations/large-deletions.test.ts',
  'test/operations/long-inputs.test.ts',
  'test/operations/query-plans.test.ts',
  'test/operations/silent-model.test.ts',
  'test/outbound/example-upstream.test.ts',
  'packages/safe-http/src/concurrent-responses.test.ts',
  'apps/server/src/threads/thread-pool.test.ts',
  'test/budgets/',
  'test/replicas/',
  'packages/tool-config/src/external-text.test.ts',
  'test/shipping/backup-moves.test.ts',
  'test/shipping/bench-modes.test.ts',
  'test/shipping/built-site.test.ts',
  'test/shipping/drill.test.ts',
  'test/shipping/fresh-clone.test.ts',
  'test/shipping/generated-clients.test.ts',
  'test/shipping/image.test.ts',
  'test/shipping/operator-tutorial.test.ts',
  'test/shipping/package.test.ts',
  'test/shipping/proxies.test.ts',
  'apps/server/src/store/calls/result-chunks.test.ts',
  'test/store/audit-details.test.ts',
  'apps/server/src/gateway/call/call-log.test.ts',
  'apps/server/src/store/changes/change-positions.test.ts',
  'test/store/file-modes.test.ts',
  'test/store/killed-first-start.test.ts',
  'test/store/postgres-limits.test.ts',
  'apps/server/src/store/engine/sqlite-file.test.ts',
  'apps/server/src/store/transaction-thread.test.ts',
  'test/telemetry/failing-collector.test.ts',
];

/** Returns true if a test file, given as a path relative to the repository, runs on every change. */
export function runsOnEveryChange(file: string): boolean {
  return !fullSuiteOnly.some((path) => (path.endsWith('/') ? file.startsWith(path) : file === path));
}

/** Engines for tests whose results rarely differ between engines: only SQLite on every change. */
export const engines: readonly Engine[] = isFullSuite ? ['sqlite', 'postgres'] : ['sqlite'];

/** Number of runs of a property test: `fullCount` in the full set, a tenth of it on every change. */
export function getRunCount(fullCount: number): number {
  return isFullSuite ? fullCount : Math.ceil(fullCount / 10);
}
