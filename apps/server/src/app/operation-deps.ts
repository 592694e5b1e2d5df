import { randomBytes } from 'node:crypto';
import { AppError } from '@toolhost/errors/errors';
import { formatEgressAllow } from '@toolhost/safe-http/egress';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import type { UrlRule } from '@toolhost/tool-config/server-rules';
import { type Config, localWorkspace } from '../config.ts';
import { createConfigRules, type OperationDeps, type RuleSource, type Serving } from '../operations/operation.ts';
import { createServerHosts, getBasePath, ownHostPath } from '../own-hosts.ts';
import { buildUrl, routes } from '../routes.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { createImporting } from './adapters/importing.ts';
import { createCheckConfigOnThread } from './adapters/threads.ts';

/** Returns the settings of the service that restrict configurations. */
function toRuleSource({ managementSlug, egressAllow, baseUrl }: Config & { baseUrl: string }): RuleSource {
  return {
    managementSlug,
    egressAllow: formatEgressAllow(egressAllow),
    ownBase: new URL(baseUrl).host + getBasePath(baseUrl),
    acceptsFormPost: baseUrl.startsWith('https:'),
  };
}

/** Returns a function that explains why this deployment may not call a URL; undefined if it may. */
export function createUrlRule(config: Config & { baseUrl: string }): UrlRule {
  return createConfigRules(toRuleSource(config)).urlProblem;
}

/** Returns a function that finds the URL of a server on its own host; undefined if servers have no own hosts. */
export function createServerHostUrls({ serverHosts, baseUrl }: Config & { baseUrl: string }) {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  return (slug: string): string | undefined => hosts && hosts.getOrigin(slug) + ownHostPath;
}

/** Creates the dependencies of operations. The command line omits `service`, and has neither threads nor calls. */
export function createOperationDeps(
  config: Config & { baseUrl: string },
  keyring: Keyring,
  now: () => number,
  service?: { threads: ThreadPool; http: HttpClient; clock: () => number; serving: Serving },
): OperationDeps {
  const rules = toRuleSource(config);
  return {
    keyring,
    rules: createConfigRules(rules),
    serving: service?.serving,
    checkConfigOnThread: service && createCheckConfigOnThread(service.threads, rules),
    importer: service
      ? createImporting({
          threads: service.threads,
          http: service.http,
          clock: service.clock,
          rules,
          findUrlProblem: createConfigRules(rules).urlProblem,
        })
      : { plan: rejectNotServing, reimport: rejectNotServing, check: rejectNotServing },
    baseUrl: config.baseUrl,
    serverUrl: (slug) => buildUrl(config.baseUrl, routes.mcp, slug),
    serverHostUrl: createServerHostUrls(config),
    callbackUrl: (slug) => buildUrl(config.baseUrl, routes.callback, slug),
    defaultLimits: toDefaultLimits(config),
    defaultQuotas: config.quotas,
    exampleWorkspaceId: config.mode === 'local' && config.demo ? localWorkspace.id : undefined,
    callRetentionDays: config.callRetentionDays,
    auditRetentionDays: config.auditRetentionDays,
    now,
    random: randomBytes,
  };
}

async function rejectNotServing(): Promise<never> {
  throw new AppError('unavailable', 'this requires the running service');
}

export function toDefaultLimits({ callsPerSecond, concurrentCalls, concurrentCallsPerKey }: Config) {
  return { callsPerSecond, concurrentCalls, concurrentPerKey: concurrentCallsPerKey };
}
