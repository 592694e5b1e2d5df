import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Every test file, as a path below the root of the repository. */
export function testFiles(): string[] {
  return readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => relative(root, join(import.meta.dirname, name)))
    .toSorted();
}

/** The quick set: something of every layer, under a minute on two cores. */
export const quickFiles: readonly string[] = [
  // The house
  ...['house', 'requirements', 'reference'],
  // domain
  ...['json-parts', 'json-schema', 'configuration', 'configuration-warnings', 'request-building', 'request-encoding'],
  ...['parameter-names', 'tool-result'],
  // store, on both engines
  ...['store-servers', 'store-logins', 'sealing', 'remembered'],
  // outbound
  ...['address', 'egress', 'connections'],
  // gateway
  ...['calls', 'credentials', 'plain-arguments', 'tool-failure', 'circuit-breaker', 'limits'],
  ...['protocol-http', 'protocol-legacy', 'protocol-modern'],
  // oauth
  ...['oauth-discovery', 'oauth-consent', 'oauth-token'],
  // operations, manage and edge
  ...['rest', 'management', 'roles', 'secrets', 'edge-hostile', 'web-headers'],
  // cli, threads, telemetry, and the dashboard
  ...['cli-check', 'seed', 'threads', 'metrics', 'dashboard-rules', 'dashboard-session'],
].map((name) => `test/${name}.test.ts`);
