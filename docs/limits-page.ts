import { basename } from 'node:path';
import { bodyLimits, configurationLimits, eventLoopLimits } from '@toolhost/json/body-limits';
import type { BodyLimits } from '@toolhost/json/json-scan';
import { workspaceLimitFactor } from '@toolhost/limits/call-limits';
import { defaultMaxQueued, defaultQueueTimeoutMs } from '@toolhost/limits/concurrency-limiter';
import { minCountedBytes } from '@toolhost/limits/memory-budget';
import { maxBatchLength, maxBatchMessages } from '@toolhost/mcp-protocol/legacy';
import { maxBundleCharacters, maxFiles } from '@toolhost/openapi-to-tools/bundle';
import { maxDocumentCharacters } from '@toolhost/openapi-to-tools/plan-outline';
import { maxModelSteps } from '@toolhost/server/model';
import { maxNotificationsPerDay, maxWebhooks, notificationRetentionMs } from '@toolhost/server/notification-events';
import { fileChunkBytes, fileRetentionMs, maxInlineBytes } from '@toolhost/tool-config/file-names';
import { maxHeaderLength, maxParameters, maxRequestTargetLength } from '@toolhost/tool-config/http/values';
import { maxArguments } from '@toolhost/tool-config/input-schema';
import { maxLoginFields } from '@toolhost/tool-config/login';
import { remainderRetentionMs } from '@toolhost/tool-config/read-more';
import { maxTools } from '@toolhost/tool-config/server-config';
import { maxTimeoutMs, maxUrlLength } from '@toolhost/tool-config/tool';
import { maxViews } from '@toolhost/tool-config/view';
import { fetchTimeoutMs, maxDocumentBytes } from '../apps/server/src/app/adapters/fetch-document.ts';
import { maxConcurrentImports } from '../apps/server/src/app/adapters/importing.ts';
import { importTimes, jobQueue, jobTimes, maxThreads } from '../apps/server/src/app/adapters/threads.ts';
import { minWorkBytes } from '../apps/server/src/app/process-memory.ts';
import { loginRequestsPerMinute } from '../apps/server/src/app/web.ts';
import { defaultMaxNetworks, maxFailures } from '../apps/server/src/edge/address-limit.ts';
import { maxPipelined } from '../apps/server/src/edge/client-connections.ts';
import { deadlineBytes, overLimitMs } from '../apps/server/src/edge/unread-responses.ts';
import {
  chargedBytes,
  chargedLength,
  maxQueries,
  maxQueriesPerAddress,
} from '../apps/server/src/edge/unverified-callers.ts';
import { maxRefusedRecords, maxWaitingRecords } from '../apps/server/src/gateway/call/call-log.ts';
import { maxRedirects } from '../apps/server/src/gateway/call/follow-redirects.ts';
import { verifiedTtlMs } from '../apps/server/src/gateway/callers/caller.ts';
import { maxVerifiedCallers } from '../apps/server/src/gateway/callers/resolve-caller.ts';
import { maxCaptureBytes } from '../apps/server/src/gateway/captures/fit-capture.ts';
import { maxPassedFiles } from '../apps/server/src/gateway/files/argument-files.ts';
import { maxDownloads } from '../apps/server/src/gateway/files/file-listener.ts';
import { defaultLimitBytes } from '../apps/server/src/gateway/hosted/hosted-server.ts';
import {
  largeServerLimits,
  maxCachedServers,
  maxCompiledCharacters,
} from '../apps/server/src/gateway/hosted/hosted-servers.ts';
import { maxToolListBytes } from '../apps/server/src/gateway/hosted/server-variants.ts';
import {
  circuitOpenMs,
  circuitWindowMs,
  maxCircuits,
  minFailures,
} from '../apps/server/src/gateway/limits/circuit-breakers.ts';
import { maxQueueLength } from '../apps/server/src/gateway/limits/limiter-registry.ts';
import { burstMs, defaultCapacity, shedAboveMs } from '../apps/server/src/gateway/limits/limits.ts';
import { maxEventLength } from '../apps/server/src/gateway/models/event-stream.ts';
import { maxCharacters, maxParts } from '../apps/server/src/gateway/models/model-response.ts';
import { maxModelResponseBytes, modelTimeoutMs } from '../apps/server/src/gateway/models/send-question.ts';
import { maxGroups } from '../apps/server/src/manage/identity.ts';
import { maxLargeBodies } from '../apps/server/src/manage/rest.ts';
import { maxInProgress } from '../apps/server/src/oauth/login-cookies.ts';
import { durations } from '../apps/server/src/oauth/oauth-deps.ts';
import { maxCachedGrants } from '../apps/server/src/oauth/provider-tokens.ts';
import { refusalPeriodToEndMs, refusalsToEnd } from '../apps/server/src/oauth/refresh-refusals.ts';
import { maxLoginBodyBytes } from '../apps/server/src/oauth/router.ts';
import { maxExported } from '../apps/server/src/operations/calls/call-records.ts';
import { maxWatched } from '../apps/server/src/operations/imports/watch-operations.ts';
import { maxCreated } from '../apps/server/src/operations/people/add-workspace.ts';
import { maxWorkspaces } from '../apps/server/src/operations/people/workspaces.ts';
import { maxMessages } from '../apps/server/src/operations/playground/ask-model.ts';
import { maxModels } from '../apps/server/src/operations/playground/models.ts';
import {
  maxConcurrentModels,
  maxConcurrentOperations,
  reportQueue,
} from '../apps/server/src/operations/quotas/concurrency-limiters.ts';
import { maxSecrets } from '../apps/server/src/operations/servers/secrets.ts';
import { defaultRuntimeOptions, maxClientConnections, shutdownTimeoutMs } from '../apps/server/src/process/start.ts';
import { quotaKinds, quotaNames } from '../apps/server/src/quotas.ts';
import { maxCachedKeys, maxKeyChainLength } from '../apps/server/src/store/api-keys.ts';
import {
  maxDetailCharsPerDay,
  maxDetailLength,
  maxLoginEventsPerDay,
  maxUnmeteredDetailLength,
} from '../apps/server/src/store/audit-events.ts';
import {
  captureRetentionMs,
  maxCapturesPerServer,
  maxCapturesPerWorkspace,
} from '../apps/server/src/store/calls/captures.ts';
import { maxStoredFiles } from '../apps/server/src/store/calls/files.ts';
import { maxStored } from '../apps/server/src/store/calls/result-chunks.ts';
import { maxAgentsPerPerson, maxLoginBytesPerMinute } from '../apps/server/src/store/logins/grants.ts';
import { maxPeoplePerServer } from '../apps/server/src/store/logins/person-values.ts';
import { invitationLifetimeMs } from '../apps/server/src/store/people/members.ts';
import { maxGroupLength, maxRoleGroups } from '../apps/server/src/store/people/role-groups.ts';
import { maxSessionsPerPerson } from '../apps/server/src/store/people/sessions.ts';
import { maxLoginBytesPerWorkspace, maxPassthroughTokens } from '../apps/server/src/store/pruning/prune-logins.ts';
import { maxEndedKeys } from '../apps/server/src/store/pruning/prune-people.ts';
import { restorePeriodMs } from '../apps/server/src/store/servers/deleted-servers.ts';
import { maxImports } from '../apps/server/src/store/servers/imports.ts';
import { maxCatalogEntries, maxCatalogEntriesPerTenant } from '../apps/server/src/store/servers/public-servers.ts';
import { maxVersionBytes } from '../apps/server/src/store/servers/server-versions.ts';
import { variables } from '../apps/server/src/variables.ts';
import { documentLimits } from '../packages/openapi-to-tools/src/document/parse-document.ts';
import { maxOperations } from '../packages/openapi-to-tools/src/read-description.ts';
import {
  firstKeepAliveMs,
  keepAliveMs,
  maxIdlePerTenant,
  maxPerPool,
  maxUpstreamConnections,
} from '../packages/safe-http/src/connections.ts';

/** Limited resource, its limit, and the source file that defines it. */
type Limit = [what: string, bound: string, where: string];

const formatCount = (value: number) => value.toLocaleString('en');

/** Formats a size in the shortest unit: 65,536 bytes as 64 KiB, and 20,000,000 bytes as 20 MB. */
function formatSize(bytes: number): string {
  for (const [unit, name] of [
    [1024 * 1024, 'MiB'],
    [1_000_000, 'MB'],
    [1024, 'KiB'],
  ] as const)
    if (bytes >= unit && bytes % unit === 0) return `${formatCount(bytes / unit)} ${name}`;
  return `${formatCount(bytes)} bytes`;
}

function formatDuration(ms: number): string {
  for (const [unit, name] of [
    [24 * 60 * 60_000, 'days'],
    [60 * 60_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ] as const)
    if (ms >= unit && ms % unit === 0) return ms === unit && name === 'days' ? '1 day' : `${ms / unit} ${name}`;
  return `${formatCount(ms)} ms`;
}

const formatShare = (share: number) => `${share * 100}% of the time`;
const formatBodyLimits = ({ bytes, elements, names, depth }: BodyLimits) =>
  `${formatSize(bytes)}, ${formatCount(elements)} elements, ${formatCount(names)} names, ${depth} levels`;
const formatTenantAndTotal = ({ perTenant, total }: { perTenant: number; total: number }) =>
  `${perTenant} per creator, ${formatCount(total)} per process`;
const formatSetting = (name: keyof typeof variables) =>
  `${formatCount(Number(variables[name].fallback))} (\`${name}\`)`;

const formatVariable = (name: keyof typeof variables) => `\`${name}\` (${variables[name].fallback})`;

const { queueMs, slowReaderMs, headersTimeoutMs, requestTimeoutMs, idleTimeoutMs, reportShare } = defaultRuntimeOptions;

const sections: Record<string, Limit[]> = {
  'Tool calls': [
    [
      'calls per second of a server',
      formatSetting('CALLS_PER_SECOND'),
      'apps/server/src/gateway/limits/limiter-registry.ts',
    ],
    [
      'concurrent calls of a server',
      formatSetting('CONCURRENT_CALLS'),
      'apps/server/src/gateway/limits/limiter-registry.ts',
    ],
    [
      'concurrent calls with a credential',
      formatSetting('CONCURRENT_CALLS_PER_KEY'),
      'apps/server/src/gateway/limits/limiter-registry.ts',
    ],
    [
      'calls of a workspace',
      `${workspaceLimitFactor} times the limits of a server`,
      'packages/limits/src/call-limits.ts',
    ],
    ['burst of an idle server', `${formatDuration(burstMs)} of its rate`, 'apps/server/src/gateway/limits/limits.ts'],
    ['queued calls per limit', formatCount(maxQueueLength), 'apps/server/src/gateway/limits/limiter-registry.ts'],
    ['queue timeout of a call', formatDuration(queueMs), 'apps/server/src/process/start.ts'],
    [
      'calls of a process, including queued ones',
      `${formatCount(defaultCapacity)}; a creator at most as many as remain free for others`,
      'apps/server/src/gateway/limits/limits.ts',
    ],
    [
      'event-loop lag, twice in a row, above which calls are rejected',
      formatDuration(shedAboveMs),
      'apps/server/src/gateway/limits/limits.ts',
    ],
    [
      'failures that open the circuit breaker of an origin',
      `${minFailures}, and more than half, within ${formatDuration(circuitWindowMs)}`,
      'apps/server/src/gateway/limits/circuit-breakers.ts',
    ],
    [
      'time that a circuit breaker stays open',
      formatDuration(circuitOpenMs),
      'apps/server/src/gateway/limits/circuit-breakers.ts',
    ],
    ['`timeout_ms`', formatDuration(maxTimeoutMs), 'packages/tool-config/src/tool.ts'],
    ['redirects that a tool follows', formatCount(maxRedirects), 'apps/server/src/gateway/call/follow-redirects.ts'],
    [
      'messages in a batch, and size of its responses',
      `${maxBatchMessages}; ${formatSize(maxBatchLength)}`,
      'packages/mcp-protocol/src/legacy.ts',
    ],
    [
      'records of rejected calls per server, minute, and process',
      formatCount(maxRefusedRecords),
      'apps/server/src/gateway/call/call-log.ts',
    ],
    ['queued call records of a process', formatCount(maxWaitingRecords), 'apps/server/src/gateway/call/call-log.ts'],
  ],
  'Addresses and unverified callers': [
    [
      'rejected requests per address and minute',
      formatSetting('REFUSALS_PER_MINUTE'),
      'apps/server/src/edge/unverified-callers.ts',
    ],
    ['the same per IPv6 /56 and /48', '4 times, and 16 times', 'packages/limits/src/call-limits.ts'],
    [
      'unit that counts as one rejected request',
      `${formatSize(chargedBytes)} of tool lists; ${formatCount(chargedLength)} characters of an unverified token`,
      'apps/server/src/edge/unverified-callers.ts',
    ],
    [
      'credential queries per second of an address above that',
      `${maxQueriesPerAddress}; ${maxQueries} for all such addresses`,
      'apps/server/src/edge/unverified-callers.ts',
    ],
    [
      'requests to logins and sign-in per address and minute',
      formatCount(loginRequestsPerMinute),
      'apps/server/src/app/web.ts',
    ],
    [
      'rejected codes per minute at provider callbacks',
      `${maxFailures.perAddress} per address, ${maxFailures.perProvider} per provider`,
      'apps/server/src/edge/address-limit.ts',
    ],
    [
      'time that a token counts as verified after a 2xx response',
      formatDuration(verifiedTtlMs),
      'apps/server/src/gateway/callers/caller.ts',
    ],
  ],
  Operations: [
    [
      'concurrent reads',
      formatCount(maxConcurrentOperations.read),
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    [
      'concurrent changes',
      `${maxConcurrentOperations.write}; one write per creator`,
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    [
      'concurrent tests and connection checks',
      formatCount(maxConcurrentOperations.call),
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    [
      'queued operations of each kind, and queue timeout',
      `${defaultMaxQueued}; ${formatDuration(defaultQueueTimeoutMs)}`,
      'packages/limits/src/concurrency-limiter.ts',
    ],
    [
      'lists, statistics, and exports of a creator',
      `1 at a time, ${formatShare(reportShare)}`,
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    [
      'queued ones, and queue timeout',
      `${reportQueue.maxQueued}; ${formatDuration(reportQueue.queueTimeoutMs)}`,
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    [
      'reads of large servers',
      `${formatTenantAndTotal({ ...largeServerLimits, total: largeServerLimits.maxConcurrent })} concurrently, ${formatShare(largeServerLimits.cpuShare())}, queue timeout ${formatDuration(largeServerLimits.queueTimeoutMs)}`,
      'apps/server/src/gateway/hosted/hosted-servers.ts',
    ],
    ['job threads of a process', formatCount(maxThreads), 'apps/server/src/app/adapters/threads.ts'],
    [
      'queued jobs, and queue timeout',
      `${formatTenantAndTotal(jobQueue)}; ${formatDuration(jobTimes.queueTimeoutMs)}, ${formatDuration(importTimes.queueTimeoutMs)} for imports`,
      'apps/server/src/app/adapters/threads.ts',
    ],
    [
      'job timeout',
      `${formatDuration(jobTimes.limitMs)}, ${formatDuration(importTimes.limitMs)} for an import`,
      'apps/server/src/app/adapters/threads.ts',
    ],
    ['concurrent imports', formatTenantAndTotal(maxConcurrentImports), 'apps/server/src/app/adapters/importing.ts'],
    ['records per export', formatCount(maxExported), 'apps/server/src/operations/calls/call-records.ts'],
  ],
  Playground: [
    [
      'concurrent model requests',
      formatTenantAndTotal(maxConcurrentModels),
      'apps/server/src/operations/quotas/concurrency-limiters.ts',
    ],
    ['model responses to one question', formatCount(maxModelSteps), 'apps/server/src/model.ts'],
    ['a tool list', formatSize(maxToolListBytes), 'apps/server/src/gateway/hosted/server-variants.ts'],
    ['messages in a conversation', formatCount(maxMessages), 'apps/server/src/operations/playground/ask-model.ts'],
    [
      'a model response',
      `${formatSize(maxModelResponseBytes)}, ${formatDuration(modelTimeoutMs)}, ${maxCharacters} characters in ${maxParts} texts and calls`,
      'apps/server/src/gateway/models/',
    ],
    ['an event in a model response', `${maxEventLength} characters`, 'apps/server/src/gateway/models/event-stream.ts'],
  ],
  'Sizes of requests': [
    ['a request body', formatBodyLimits(bodyLimits), 'packages/json/src/body-limits.ts'],
    ['a body with a configuration', formatBodyLimits(configurationLimits), 'packages/json/src/body-limits.ts'],
    [
      'a body for an operation without long fields',
      formatBodyLimits(eventLoopLimits),
      'packages/json/src/body-limits.ts',
    ],
    ['a body for a login', formatSize(maxLoginBodyBytes), 'apps/server/src/oauth/router.ts'],
    [
      'concurrent incoming bodies larger than that of a configuration',
      formatTenantAndTotal(maxLargeBodies),
      'apps/server/src/manage/rest.ts',
    ],
    [
      'path and query of an API request',
      `${formatCount(maxRequestTargetLength)} characters`,
      'packages/tool-config/src/http/values.ts',
    ],
    [
      'a header value from an argument',
      `${formatCount(maxHeaderLength)} characters`,
      'packages/tool-config/src/http/values.ts',
    ],
    ['pairs in a query or a form', formatCount(maxParameters), 'packages/tool-config/src/http/values.ts'],
    [
      'a fetched description; a YAML description',
      `${formatSize(maxDocumentBytes)}; ${formatSize(documentLimits.yamlBytes)}`,
      'packages/openapi-to-tools/src/document/parse-document.ts',
    ],
    ['an uploaded description', formatSize(maxDocumentCharacters), 'packages/openapi-to-tools/src/plan-outline.ts'],
    [
      'files in a description',
      `${maxFiles}, ${formatSize(maxBundleCharacters)}`,
      'packages/openapi-to-tools/src/bundle.ts',
    ],
    ['operations in a description', formatCount(maxOperations), 'packages/openapi-to-tools/src/read-description.ts'],
    [
      'timeout for fetching a description',
      formatDuration(fetchTimeoutMs),
      'apps/server/src/app/adapters/fetch-document.ts',
    ],
  ],
  'Results and files': [
    [
      'a response, if `response_limit_bytes` is absent',
      formatSize(defaultLimitBytes),
      'apps/server/src/gateway/hosted/hosted-server.ts',
    ],
    ['a file that is embedded in the result', formatSize(maxInlineBytes), 'packages/tool-config/src/file-names.ts'],
    [
      'stored files of a workspace',
      `${formatCount(maxStoredFiles.files)}, ${formatSize(maxStoredFiles.bytes)}, ${formatDuration(fileRetentionMs)}`,
      'apps/server/src/store/calls/files.ts',
    ],
    [
      'files that a call passes by URL',
      `${maxPassedFiles.files}, ${formatSize(maxPassedFiles.bytes)}`,
      'apps/server/src/gateway/files/argument-files.ts',
    ],
    ['concurrent downloads', formatTenantAndTotal(maxDownloads), 'apps/server/src/gateway/files/file-listener.ts'],
    [
      'stored remainders of long results of a workspace',
      `${formatCount(maxStored.rows)}, ${formatSize(maxStored.characters)}, ${formatDuration(remainderRetentionMs)}`,
      'apps/server/src/store/calls/result-chunks.ts',
    ],
    ['a capture', formatSize(maxCaptureBytes), 'apps/server/src/gateway/captures/fit-capture.ts'],
    [
      'stored captures',
      `${formatCount(maxCapturesPerServer)} per server, ${formatCount(maxCapturesPerWorkspace)} per workspace, ${formatDuration(captureRetentionMs)}`,
      'apps/server/src/store/calls/captures.ts',
    ],
  ],
  'Client connections': [
    [
      'connections of a process',
      `${formatCount(maxClientConnections)}, fewer if there are fewer file descriptors`,
      'apps/server/src/process/start.ts',
    ],
    ['pipelined requests of a connection', formatCount(maxPipelined), 'apps/server/src/edge/client-connections.ts'],
    [
      'time to send the headers; a whole request',
      `${formatDuration(headersTimeoutMs)}; ${formatDuration(requestTimeoutMs)}`,
      'apps/server/src/process/start.ts',
    ],
    [
      'time to read a response',
      `${formatDuration(slowReaderMs)}, plus the same for each started ${formatSize(deadlineBytes)}`,
      'apps/server/src/edge/unread-responses.ts',
    ],
    ['the same if memory is low', formatDuration(overLimitMs), 'apps/server/src/edge/unread-responses.ts'],
    [
      'time to read a chunk of a file',
      `${formatDuration(slowReaderMs)} for ${formatSize(fileChunkBytes)}`,
      'apps/server/src/gateway/files/file-listener.ts',
    ],
    ['idle timeout of a connection', formatDuration(idleTimeoutMs), 'apps/server/src/process/start.ts'],
    [
      'time for running calls to finish when the service stops',
      formatDuration(shutdownTimeoutMs),
      'apps/server/src/process/start.ts',
    ],
  ],
  'Connections to APIs': [
    ['connections of a process', formatCount(maxUpstreamConnections), 'packages/safe-http/src/connections.ts'],
    [
      'connections per workspace, origin, and credential',
      formatCount(maxPerPool),
      'packages/safe-http/src/connections.ts',
    ],
    ['idle connections per creator', formatCount(maxIdlePerTenant), 'packages/safe-http/src/connections.ts'],
    [
      'keep-alive time of an idle connection',
      `${formatDuration(keepAliveMs)}, ${formatDuration(firstKeepAliveMs)} after its first request`,
      'packages/safe-http/src/connections.ts',
    ],
  ],
  Logins: [
    [
      'active logins of a workspace, and ended ones',
      `${formatSize(maxLoginBytesPerWorkspace)} each`,
      'apps/server/src/store/pruning/prune-logins.ts',
    ],
    [
      'new logins per minute',
      `${formatSize(maxLoginBytesPerMinute.ofTenant)} per creator, ${formatSize(maxLoginBytesPerMinute.ofServer)} per server`,
      'apps/server/src/store/logins/grants.ts',
    ],
    [
      'passthrough tokens of a workspace',
      formatCount(maxPassthroughTokens),
      'apps/server/src/store/pruning/prune-logins.ts',
    ],
    ['pending logins of a browser', formatCount(maxInProgress), 'apps/server/src/oauth/login-cookies.ts'],
    [
      'people whose values a server stores; values of a person there',
      `${formatCount(maxPeoplePerServer)}; ${maxLoginFields}`,
      'apps/server/src/store/logins/person-values.ts',
    ],
    [
      'a login whose identity provider issues no refresh token',
      formatDuration(durations.uncheckedLogin),
      'apps/server/src/oauth/oauth-deps.ts',
    ],
    [
      'agents of a person at the management server',
      formatCount(maxAgentsPerPerson),
      'apps/server/src/store/logins/grants.ts',
    ],
    [
      'sessions of a person in the dashboard',
      formatCount(maxSessionsPerPerson),
      'apps/server/src/store/people/sessions.ts',
    ],
    [
      'groups of a person, and the name of a group; beyond either, the groups count as none',
      `${formatCount(maxGroups)}; ${maxGroupLength} characters`,
      'apps/server/src/manage/identity.ts',
    ],
    [
      'response timeout of a provider',
      formatDuration(durations.providerTimeout),
      'apps/server/src/oauth/oauth-deps.ts',
    ],
    [
      'consecutive failed renewals without a reason that end a login',
      `${refusalsToEnd} over ${formatDuration(refusalPeriodToEndMs)}`,
      'apps/server/src/oauth/refresh-refusals.ts',
    ],
    [
      'time for the consent, and for the login',
      `${formatDuration(durations.consent)} each`,
      'apps/server/src/oauth/oauth-deps.ts',
    ],
    [
      'lifetime of a code; an access token; an unused refresh token',
      `${formatDuration(durations.code)}; ${formatDuration(durations.access)}; ${formatDuration(durations.refresh)}`,
      'apps/server/src/oauth/oauth-deps.ts',
    ],
    [
      'audit events of a server per day',
      `${formatCount(maxLoginEventsPerDay.login)} logins, ${formatCount(maxLoginEventsPerDay.loginRevoked)} ended by agents, ${maxLoginEventsPerDay.loginFailed} failed`,
      'apps/server/src/store/audit-events.ts',
    ],
  ],
  'What a workspace stores': [
    ...quotaNames.map(
      (name): Limit => [
        `${quotaKinds[name].description} (quota \`${name}\`)`,
        formatCount(quotaKinds[name].defaultValue),
        'apps/server/src/quotas.ts',
      ],
    ),
    ['tools of a server, regardless of quotas', formatCount(maxTools), 'packages/tool-config/src/server-config.ts'],
    ['arguments of a tool', formatCount(maxArguments), 'packages/tool-config/src/input-schema.ts'],
    ['`url` of a tool', `${formatCount(maxUrlLength)} characters`, 'packages/tool-config/src/tool.ts'],
    [
      'public servers in the catalog',
      formatCount(maxCatalogEntries),
      'apps/server/src/store/servers/public-servers.ts',
    ],
    [
      'public servers of one owner in the catalog',
      formatCount(maxCatalogEntriesPerTenant),
      'apps/server/src/store/servers/public-servers.ts',
    ],
    ['views of a server', formatCount(maxViews), 'packages/tool-config/src/view.ts'],
    ['roles by group of a workspace', formatCount(maxRoleGroups), 'apps/server/src/store/people/role-groups.ts'],
    ['models of a workspace', formatCount(maxModels), 'apps/server/src/operations/playground/models.ts'],
    ['secrets of a server', formatCount(maxSecrets), 'apps/server/src/operations/servers/secrets.ts'],
    ['stored versions of a server', formatSize(maxVersionBytes), 'apps/server/src/store/servers/server-versions.ts'],
    ['stored imports of a server', formatCount(maxImports), 'apps/server/src/store/servers/imports.ts'],
    ['watched descriptions', formatCount(maxWatched), 'apps/server/src/operations/imports/watch-operations.ts'],
    [
      'keys in a chain, each created with the previous one',
      formatCount(maxKeyChainLength),
      'apps/server/src/store/api-keys.ts',
    ],
    ['revoked and expired keys', formatCount(maxEndedKeys), 'apps/server/src/store/pruning/prune-people.ts'],
    ['an invitation', formatDuration(invitationLifetimeMs), 'apps/server/src/store/people/members.ts'],
    ['workspaces of a person', formatCount(maxWorkspaces), 'apps/server/src/operations/people/workspaces.ts'],
    [
      'workspaces that a person creates in total, and per day',
      formatCount(maxCreated),
      'apps/server/src/operations/people/add-workspace.ts',
    ],
    [
      'a deleted server that can be restored',
      formatDuration(restorePeriodMs),
      'apps/server/src/store/servers/deleted-servers.ts',
    ],
    ['webhooks', formatCount(maxWebhooks), 'apps/server/src/notification-events.ts'],
    [
      'notifications',
      `${formatCount(maxNotificationsPerDay)} per day, stored for ${formatDuration(notificationRetentionMs)}`,
      'apps/server/src/notification-events.ts',
    ],
    ['details of an audit event', formatSize(maxDetailLength), 'apps/server/src/store/audit-events.ts'],
    [
      `details above ${formatCount(maxUnmeteredDetailLength)} characters, per creator and day`,
      formatSize(maxDetailCharsPerDay),
      'apps/server/src/store/audit-events.ts',
    ],
  ],
  'Memory of a process': [
    [
      'bodies, arguments, responses, and configurations in use',
      `a quarter, at least ${formatSize(minWorkBytes)}; a creator at most half of the free memory`,
      'apps/server/src/app/process-memory.ts',
    ],
    [
      'allocations that are not counted',
      `up to ${formatSize(minCountedBytes)}`,
      'packages/limits/src/memory-budget.ts',
    ],
    [
      'compiled servers',
      `${formatCount(maxCachedServers)}, ${formatCount(maxCompiledCharacters)} characters`,
      'apps/server/src/gateway/hosted/hosted-servers.ts',
    ],
    ['API keys', formatCount(maxCachedKeys), 'apps/server/src/store/api-keys.ts'],
    ['verified tokens', formatCount(maxVerifiedCallers), 'apps/server/src/gateway/callers/resolve-caller.ts'],
    ['logins in use', formatCount(maxCachedGrants), 'apps/server/src/oauth/provider-tokens.ts'],
    ['addresses per limit', formatCount(defaultMaxNetworks), 'apps/server/src/edge/address-limit.ts'],
    ['circuit breakers', formatCount(maxCircuits), 'apps/server/src/gateway/limits/circuit-breakers.ts'],
  ],
};

/** Limits that users encounter: the limit, its default, and who sets it. */
const userLimits: [limit: string, fallback: string, setBy: string][] = [
  ['calls per second of one server', formatVariable('CALLS_PER_SECOND'), 'people who manage the server'],
  ['concurrent calls of one server', formatVariable('CONCURRENT_CALLS'), 'people who manage the server'],
  [
    'concurrent calls with one API key, login, or API token',
    formatVariable('CONCURRENT_CALLS_PER_KEY'),
    'the operator',
  ],
  [
    'calls per second, and concurrent calls, of all servers of a workspace',
    `${workspaceLimitFactor} times those of one server`,
    'the operator',
  ],
  ['calls per second with one API key', 'none', 'people who manage the workspace'],
  ['calls per minute and day (UTC) of a server or an API key', 'none', 'people who manage the workspace'],
  ['calls per minute and day of a workspace', 'none', 'the operator'],
  [
    '[rejected requests](#what-happens-above-a-limit) per minute from one IP address',
    formatVariable('REFUSALS_PER_MINUTE'),
    'the operator',
  ],
  ['[stored data](#quotas-what-a-workspace-may-store) of a workspace', 'quotas', 'the operator'],
];

const userLimitsStart = '<!-- The table is generated by `npm run docs` from docs/limits-page.ts. -->\n';

/** Returns the page for users with its table of limits generated from the constants in the code. */
export function updateUserLimits(page: string): string {
  const [before = '', rest = ''] = page.split(userLimitsStart);
  const after = rest.slice(rest.indexOf('\n\n'));
  const rows = userLimits.map((cells) => `| ${cells.join(' | ')} |`);
  return [before + userLimitsStart, '| limit | default | set by |', '|---|---|---|', ...rows].join('\n') + after;
}

/** Generates the page of all limits from the constants in the code. */
export function limitsPage(generated: string): string {
  const tables = Object.entries(sections).map(([title, limits]) => {
    const rows = limits.map(
      ([resource, limit, source]) => `| ${resource} | ${limit} | [${basename(source)}](../../${source}) |`,
    );
    return [`## ${title}\n`, '| resource | limit | source |', '|---|---|---|', ...rows, ''].join('\n');
  });
  return [
    '# All limits',
    generated,
    'All limits of the service. [Limits](../limits.md) explains what happens above a limit, and who can change it. A name in capitals is a [variable](environment.md). "Per creator" covers all workspaces that one person created; a workspace that no person created counts separately.\n',
    ...tables,
  ].join('\n');
}
