import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import type { UrlRule } from '../domain/config/server-rules.ts';
import { basePathOf, createServerHosts, ownHostPath } from '../domain/http/own-hosts.ts';
import { AppError } from '../errors.ts';
import { type Parts, type RuleSource, rulesOf } from '../operations/operation.ts';
import { egressText } from '../outbound/egress.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { routes, urlOf } from '../routes.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ThreadPool } from '../threads/thread-pool.ts';
import { createImporting } from './adapters/importing.ts';
import { configurationWork } from './adapters/threads.ts';

/** Returns the settings of the deployment that restrict configurations. */
function ruleSource({ managementSlug, egressAllow, baseUrl }: Config & { baseUrl: string }): RuleSource {
  return { managementSlug, egressAllow: egressText(egressAllow), own: new URL(baseUrl).host + basePathOf(baseUrl) };
}

/** Returns a function that explains why this deployment may not call a URL; undefined if it may. */
export function urlRule(config: Config & { baseUrl: string }): UrlRule {
  return rulesOf(ruleSource(config)).urlProblem;
}

/** Returns a function that finds the URL of a server on its own host; undefined if servers have no own hosts. */
export function ownAddressOf({ serverHosts, baseUrl }: Config & { baseUrl: string }) {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  return (slug: string): string | undefined => hosts && hosts.originOf(slug) + ownHostPath;
}

/**
 * Creates the dependencies of operations that need no serving process. The command line has only these, without
 * threads.
 */
export function operationParts(
  config: Config & { baseUrl: string },
  keyring: Keyring,
  now: () => number,
  serving?: { threads: ThreadPool; http: HttpClient; clock: () => number },
): Omit<Parts, 'serving'> {
  const rules = ruleSource(config);
  return {
    keyring,
    rules: rulesOf(rules),
    checkConfigOnThread: serving && configurationWork(serving.threads, rules),
    importing: serving
      ? createImporting({ ...serving, rules, urlProblem: rulesOf(rules).urlProblem })
      : { plan: notServing, again: notServing, check: notServing },
    baseUrl: config.baseUrl,
    serverUrl: (slug) => urlOf(config.baseUrl, routes.mcp, slug),
    ownAddress: ownAddressOf(config),
    callbackUrl: (slug) => urlOf(config.baseUrl, routes.callback, slug),
    defaultLimits: defaultLimits(config),
    defaultQuotas: config.quotas,
    callRetentionDays: config.callRetentionDays,
    auditRetentionDays: config.auditRetentionDays,
    now,
    random: randomBytes,
  };
}

async function notServing(): Promise<never> {
  throw new AppError('unavailable', 'this requires the running service');
}

export function defaultLimits({ callsPerSecond, concurrentCalls, concurrentCallsPerKey }: Config) {
  return { callsPerSecond, concurrentCalls, concurrentPerKey: concurrentCallsPerKey };
}
