/**
 * Attacks of an adversarial workspace and of unverified callers during the soak. Each load has its own rate and
 * represents one kind of abuse: expensive work, expensive reports, or exhausted limits.
 */
import type { Target } from './load.ts';
import type { Service } from './toolhost-process.ts';

/** Targets that the load requests in rotation. A target without a body is a GET request. */
export type AttackLoad = { name: string; perSecond: number; targets: (Omit<Target, 'body'> & { body?: string })[] };

const dayMs = 24 * 60 * 60 * 1000;
const json = 'application/json';

/** Returns schemas and configurations that are small to send and slow to check. */
export function expensiveConfigs(upstream: string): object[] {
  const withTool = (tool: object) => ({
    name: 'Nasty',
    slug: 'nasty-configuration',
    tools: [{ name: 'nasty', description: 'A tool that is slow to check.', method: 'POST', url: upstream, ...tool }],
  });
  const references = Array.from({ length: 1000 }, () => ({ $ref: '#a' }));
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`keyword${n}`, n]));
  return [
    withTool({ output_schema: { type: 'object', allOf: references, $defs: { a: { $anchor: 'a' } } } }),
    withTool({ output_schema: { type: 'object', ...unknown } }),
    withTool(unknown),
    withTool({ input_schema: unknown }),
  ];
}

/** Returns tools with large responses and a configuration that makes the responses slow to parse. */
export function largeResponseTools(upstream: string): object[] {
  const tool = (name: string, more: object) => ({
    name,
    description: `Get a large response and process it with ${name}.`,
    method: 'GET',
    url: `${upstream}/8m-array`,
    ...more,
  });
  const subschemas = Array.from({ length: 200 }, () => ({ type: ['object', 'string'] }));
  return [
    tool('large_fields', { response_fields: Array.from({ length: 100 }, (_, n) => `owner.field_${n}`) }),
    tool('large_transform', { response_transform: '17.owner' }),
    tool('large_schema', {
      response_transform: '.',
      output_schema: { type: 'object', properties: { items: { type: 'array', items: { allOf: subschemas } } } },
    }),
  ];
}

/** Requests reports over thirty days, and lists that match nothing. */
export function reportLoad({ url, key }: Pick<Service, 'url' | 'key'>): AttackLoad {
  const since = new Date(Date.now() - 30 * dayMs).toISOString();
  const paths = [
    `/statistics?since=${since}`,
    '/calls?key_id=key_that_is_not_there',
    '/activity',
    '/calls?outcome=oversize&limit=100',
    '/audit',
    '/servers?limit=100',
  ];
  const headers = { Authorization: `Bearer ${key}` };
  return { name: 'reports', perSecond: 20, targets: paths.map((path) => ({ url: `${url}/api/v1${path}`, headers })) };
}

export function configurationLoad({ url, key }: Pick<Service, 'url' | 'key'>, upstream: string): AttackLoad {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': json };
  const targets = expensiveConfigs(upstream).map((config) => ({
    url: `${url}/api/v1/check`,
    headers,
    body: JSON.stringify(config),
  }));
  return { name: 'configurations', perSecond: 10, targets };
}

/** Calls the servers of other workspaces with invented bearer tokens. The upstream rejects each one after a delay. */
export function invalidBearerLoad(targets: Target[]): AttackLoad {
  const targetsWithBearer = targets.map((target, n) => ({
    ...target,
    headers: { ...target.headers, Authorization: `Bearer made-up-${n}` },
  }));
  return { name: 'invalid bearer tokens', perSecond: 100, targets: targetsWithBearer };
}

/** Sends requests that the service rejects: large bodies without a credential, unknown slugs, and invalid keys. */
export function rejectedRequestLoad({ url, headers }: Target, service: Pick<Service, 'url'>): AttackLoad {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    method: 'tools/list',
    params: { padding: 'x'.repeat(400_000) },
    id: 1,
  });
  const { Authorization, ...anonymous } = headers;
  const targets = [
    { url, headers: anonymous, body },
    { url: `${service.url}/mcp/there-is-no-such-server`, headers: anonymous, body },
    { url: `${service.url}/mcp/manage`, headers: { ...anonymous, Authorization: 'Bearer th_made_up' }, body },
    { url: `${service.url}/api/v1/servers`, headers: { Authorization: 'Bearer th_made_up' } },
  ];
  return { name: 'rejected requests', perSecond: 50, targets };
}
