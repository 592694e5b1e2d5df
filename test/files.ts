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
  ...[
    'gateway/json-parts',
    'configuration/json-schema',
    'configuration/configuration',
    'configuration/configuration-warnings',
    'request/request-building',
    'request/request-encoding',
  ],
  ...['request/parameter-names', 'gateway/tool-result'],
  // store, on both engines
  ...['store/store-servers', 'store/store-logins', 'store/sealing', 'store/remembered'],
  // outbound
  ...['outbound/address', 'outbound/egress', 'outbound/connections'],
  // gateway
  ...[
    'gateway/calls',
    'gateway/credentials',
    'gateway/plain-arguments',
    'gateway/tool-failure',
    'limits/circuit-breaker',
    'limits/limits',
  ],
  ...['protocol/http', 'protocol/legacy', 'protocol/modern'],
  // oauth
  ...['oauth/discovery', 'oauth/consent', 'oauth/token'],
  // operations, manage and edge
  ...[
    'operations/rest',
    'operations/management',
    'operations/roles',
    'operations/secrets',
    'edge/edge-hostile',
    'edge/web-headers',
  ],
  // cli, threads, telemetry, and the dashboard
  ...['cli/check', 'cli/seed', 'price/threads', 'telemetry/metrics', 'dashboard/rules', 'dashboard/session'],
].map((name) => `test/${name}.test.ts`);
