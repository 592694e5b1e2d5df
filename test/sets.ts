/**
 * Defines the two sets of tests. `npm test` runs the tests that every change must pass: at least one test for each rule
 * of `requirements.ts`, every operation on one engine, and the shared queries on both. `npm run test:all` runs all tests.
 */
import type { Engine } from '../apps/server/src/store/db.ts';

/** True if all tests run. */
export const isFullSuite = process.env.TEST_SET === 'all';

/** Files and folders (with a trailing slash) that only `npm run test:all` runs, relative to the repository. */
const fullSuiteOnly: readonly string[] = [
  'cli/completion-shells.test.ts',
  'cli/doctor-problems.test.ts',
  'cli/doctor-login.test.ts',
  'cli/login-details.test.ts',
  'cli/login-renewal.test.ts',
  'cli/follow-records.test.ts',
  'cli/seed.test.ts',
  'cli/streams.test.ts',
  'clients/agents/',
  'dashboard/details/',
  'edge/file-descriptors.test.ts',
  'faults/',
  'gateway/client-credentials-replicas.test.ts',
  'gateway/evicted-remainders.test.ts',
  'gateway/service-credentials-stored.test.ts',
  'gateway/search-quality.test.ts',
  'import-audit/import-audit.test.ts',
  'import/corpus.test.ts',
  'import/import-limits.test.ts',
  'limits/limits-command.test.ts',
  'limits/generated-tokens.test.ts',
  'limits/fair-caches.test.ts',
  'limits/quota-reservations.test.ts',
  'limits/thread-shares.test.ts',
  'oauth/chromium.test.ts',
  'oauth/conformance.test.ts',
  'oauth/endless-provider-response.test.ts',
  'oauth/failing-tables.test.ts',
  'oauth/forged-sealed-values.test.ts',
  'oauth/login-storage-limit.test.ts',
  'oauth/invalid-callback-codes.test.ts',
  'oauth/database-outage.test.ts',
  'oauth/cached-logins.test.ts',
  'oauth/provider-timeouts.test.ts',
  'operations/blocked-database.test.ts',
  'operations/large-deletions.test.ts',
  'operations/long-inputs.test.ts',
  'operations/query-plans.test.ts',
  'operations/silent-model.test.ts',
  'outbound/example-upstream.test.ts',
  'outbound/concurrent-responses.test.ts',
  'budgets/',
  'replicas/',
  'request/external-text.test.ts',
  'shipping/backup-moves.test.ts',
  'shipping/bench-modes.test.ts',
  'shipping/bench.test.ts',
  'shipping/built-site.test.ts',
  'shipping/drill.test.ts',
  'shipping/fresh-clone.test.ts',
  'shipping/generated-clients.test.ts',
  'shipping/image.test.ts',
  'shipping/package.test.ts',
  'shipping/proxies.test.ts',
  'store/result-chunks.test.ts',
  'store/audit-details.test.ts',
  'store/call-log.test.ts',
  'store/canceled-statements.test.ts',
  'store/change-positions.test.ts',
  'store/file-modes.test.ts',
  'store/killed-first-start.test.ts',
  'store/postgres-limits.test.ts',
  'store/sqlite-file.test.ts',
  'store/transaction-thread.test.ts',
  'telemetry/failing-collector.test.ts',
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
