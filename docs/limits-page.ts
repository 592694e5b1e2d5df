import { fetchTimeoutMs, maxDocumentBytes } from '../src/app/adapters/fetch-document.ts';
import { maxConcurrentImports } from '../src/app/adapters/importing.ts';
import { importTimes, jobQueue, jobTimes, maxThreads } from '../src/app/adapters/threads.ts';
import { minWorkBytes } from '../src/app/process-memory.ts';
import { loginRequestsPerMinute } from '../src/app/web.ts';
import { maxArguments } from '../src/domain/config/input-schema.ts';
import { maxTools } from '../src/domain/config/server-config.ts';
import { maxTimeoutMs, maxUrlLength } from '../src/domain/config/tool.ts';
import { maxViews } from '../src/domain/config/view.ts';
import { fileChunkBytes, fileRetentionMs, maxInlineBytes } from '../src/domain/files/file-names.ts';
import { maxHeaderLength, maxParameters, maxRequestTargetLength } from '../src/domain/http/values.ts';
import { bodyLimits, configurationLimits, eventLoopLimits } from '../src/domain/json/body-limits.ts';
import type { BodyLimits } from '../src/domain/json/json-scan.ts';
import { workspaceLimitFactor } from '../src/domain/limits.ts';
import { maxModelSteps } from '../src/domain/model.ts';
import { maxNotificationsPerDay, maxWebhooks, notificationRetentionMs } from '../src/domain/notices.ts';
import { remainderRetentionMs } from '../src/domain/pieces/read-more.ts';
import { quotaKinds, quotaNames } from '../src/domain/quotas.ts';
import { defaultMaxQueued, defaultQueueTimeoutMs } from '../src/domain/work/gate.ts';
import { minCountedBytes } from '../src/domain/work/memory-budget.ts';
import { defaultMaxAddresses, maxFailures } from '../src/edge/address-limit.ts';
import { maxPipelined } from '../src/edge/client-connections.ts';
import { chargedBytes, chargedLength, maxQueries, maxQueriesPerAddress } from '../src/edge/strangers.ts';
import { deadlineBytes, overLimitMs } from '../src/edge/unread-answers.ts';
import { maxRefusedRecords, maxWaitingRecords } from '../src/gateway/call/call-log.ts';
import { maxRedirects } from '../src/gateway/call/follow-redirects.ts';
import { verifiedTtlMs } from '../src/gateway/callers/caller.ts';
import { maxVerifiedCallers } from '../src/gateway/callers/resolve-caller.ts';
import { maxCaptureBytes } from '../src/gateway/captures/fit-capture.ts';
import { maxDownloads } from '../src/gateway/files/file-listener.ts';
import { maxPassedFiles } from '../src/gateway/files/given-files.ts';
import { defaultLimitBytes } from '../src/gateway/hosted/hosted-server.ts';
import { largeServerLimits, maxCachedServers, maxCompiledCharacters } from '../src/gateway/hosted/hosted-servers.ts';
import { maxToolListBytes } from '../src/gateway/hosted/served.ts';
import { circuitOpenMs, circuitWindowMs, maxCircuits, minFailures } from '../src/gateway/limits/circuits.ts';
import { maxQueueLength } from '../src/gateway/limits/lanes.ts';
import { burstMs, defaultCapacity, shedAboveMs } from '../src/gateway/limits/limits.ts';
import { maxEventLength } from '../src/gateway/models/event-stream.ts';
import { maxCharacters, maxParts } from '../src/gateway/models/model-response.ts';
import { maxModelResponseBytes, modelTimeoutMs } from '../src/gateway/models/send-question.ts';
import { maxBatchLength, maxBatchMessages } from '../src/gateway/protocol/legacy.ts';
import { maxBundleCharacters, maxFiles } from '../src/import/bundle.ts';
import { documentLimits } from '../src/import/document/parse-document.ts';
import { maxDocumentCharacters } from '../src/import/plan-outline.ts';
import { maxOperations } from '../src/import/read-description.ts';
import { maxLargeBodies } from '../src/manage/rest.ts';
import { maxInProgress } from '../src/oauth/consent.ts';
import { durations } from '../src/oauth/parts.ts';
import { maxCachedGrants } from '../src/oauth/provider-tokens.ts';
import { refusalPeriodToEndMs, refusalsToEnd } from '../src/oauth/refresh-refusals.ts';
import { maxLoginBodyBytes } from '../src/oauth/router.ts';
import { maxExported } from '../src/operations/calls/call-records.ts';
import { maxWatched } from '../src/operations/imports/watch-operations.ts';
import { maxCreated } from '../src/operations/people/add-workspace.ts';
import { maxWorkspaces } from '../src/operations/people/workspaces.ts';
import { maxMessages } from '../src/operations/playground/ask-model.ts';
import { maxModels } from '../src/operations/playground/models.ts';
import { maxConcurrentModels, maxConcurrentOperations, reportQueue } from '../src/operations/quotas/gate.ts';
import { maxSecrets } from '../src/operations/servers/secrets.ts';
import {
  firstKeepAliveMs,
  keepAliveMs,
  maxIdlePerTenant,
  maxPerPool,
  maxUpstreamConnections,
} from '../src/outbound/connections.ts';
import { defaultRuntimeOptions, maxClientConnections, shutdownTimeoutMs } from '../src/process/start.ts';
import { maxCachedKeys, maxKeyChainLength } from '../src/store/api-keys.ts';
import {
  maxDetailCharsPerDay,
  maxDetailLength,
  maxLoginEventsPerDay,
  maxUnmeteredDetailLength,
} from '../src/store/audit-events.ts';
import { maxStored } from '../src/store/calls/answer-pieces.ts';
import { captureRetentionMs, maxCapturesPerServer, maxCapturesPerWorkspace } from '../src/store/calls/captures.ts';
import { mostOfFiles } from '../src/store/calls/files.ts';
import { maxAgentsPerPerson, maxLoginBytesPerMinute } from '../src/store/logins/grants.ts';
import { invitationLifetimeMs } from '../src/store/people/members.ts';
import { maxSessionsPerPerson } from '../src/store/people/sessions.ts';
import { maxLoginBytesPerWorkspace, maxPassthroughTokens } from '../src/store/pruning/prune-logins.ts';
import { maxEndedKeys } from '../src/store/pruning/prune-people.ts';
import { restorePeriodMs } from '../src/store/servers/deleted-servers.ts';
import { maxImports } from '../src/store/servers/imports.ts';
import { maxVersionBytes } from '../src/store/servers/server-versions.ts';
import { variables } from '../src/variables.ts';

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

const { queueMs, slowReaderMs, headersTimeoutMs, requestTimeoutMs, idleTimeoutMs, reportShare } = defaultRuntimeOptions;

const sections: Record<string, Limit[]> = {
  'Tool calls': [
    ['calls per second of a server', formatSetting('CALLS_PER_SECOND'), 'gateway/limits/lanes.ts'],
    ['concurrent calls of a server', formatSetting('CONCURRENT_CALLS'), 'gateway/limits/lanes.ts'],
    ['concurrent calls with a credential', formatSetting('CONCURRENT_CALLS_PER_KEY'), 'gateway/limits/lanes.ts'],
    ['calls of a workspace', `${workspaceLimitFactor} times the limits of a server`, 'domain/limits.ts'],
    ['burst of an idle server', `${formatDuration(burstMs)} of its rate`, 'gateway/limits/limits.ts'],
    ['queued calls per limit', formatCount(maxQueueLength), 'gateway/limits/lanes.ts'],
    ['queue timeout of a call', formatDuration(queueMs), 'process/start.ts'],
    [
      'calls of a process, including queued ones',
      `${formatCount(defaultCapacity)}; a creator at most as many as remain free for others`,
      'gateway/limits/limits.ts',
    ],
    [
      'event-loop lag, twice in a row, above which calls are rejected',
      formatDuration(shedAboveMs),
      'gateway/limits/limits.ts',
    ],
    [
      'failures that open the circuit breaker of an origin',
      `${minFailures}, and more than half, within ${formatDuration(circuitWindowMs)}`,
      'gateway/limits/circuits.ts',
    ],
    ['time that a circuit breaker stays open', formatDuration(circuitOpenMs), 'gateway/limits/circuits.ts'],
    ['`timeout_ms`', formatDuration(maxTimeoutMs), 'domain/config/tool.ts'],
    ['redirects that a tool follows', formatCount(maxRedirects), 'gateway/call/follow-redirects.ts'],
    [
      'messages in a batch, and size of its responses',
      `${maxBatchMessages}; ${formatSize(maxBatchLength)}`,
      'gateway/protocol/legacy.ts',
    ],
    [
      'records of rejected calls per server, minute, and process',
      formatCount(maxRefusedRecords),
      'gateway/call/call-log.ts',
    ],
    ['queued call records of a process', formatCount(maxWaitingRecords), 'gateway/call/call-log.ts'],
  ],
  'Addresses and unverified callers': [
    ['rejected requests per address and minute', formatSetting('REFUSALS_PER_MINUTE'), 'edge/strangers.ts'],
    ['the same per IPv6 /56 and /48', '4 times, and 16 times', 'domain/limits.ts'],
    [
      'unit that counts as one rejected request',
      `${formatSize(chargedBytes)} of tool lists; ${formatCount(chargedLength)} characters of an unverified token`,
      'edge/strangers.ts',
    ],
    [
      'credential queries per second of an address above that',
      `${maxQueriesPerAddress}; ${maxQueries} for all such addresses`,
      'edge/strangers.ts',
    ],
    ['requests to logins and sign-in per address and minute', formatCount(loginRequestsPerMinute), 'app/web.ts'],
    [
      'rejected codes per minute at provider callbacks',
      `${maxFailures.perAddress} per address, ${maxFailures.perProvider} per provider`,
      'edge/address-limit.ts',
    ],
    [
      'time that a token counts as verified after a 2xx response',
      formatDuration(verifiedTtlMs),
      'gateway/callers/caller.ts',
    ],
  ],
  Operations: [
    ['concurrent reads', formatCount(maxConcurrentOperations.read), 'operations/quotas/gate.ts'],
    ['concurrent changes', `${maxConcurrentOperations.write}; one write per creator`, 'operations/quotas/gate.ts'],
    ['concurrent tests and connection checks', formatCount(maxConcurrentOperations.call), 'operations/quotas/gate.ts'],
    [
      'queued operations of each kind, and queue timeout',
      `${defaultMaxQueued}; ${formatDuration(defaultQueueTimeoutMs)}`,
      'domain/work/gate.ts',
    ],
    [
      'lists, statistics, and exports of a creator',
      `1 at a time, ${formatShare(reportShare)}`,
      'operations/quotas/gate.ts',
    ],
    [
      'queued ones, and queue timeout',
      `${reportQueue.maxQueued}; ${formatDuration(reportQueue.queueTimeoutMs)}`,
      'operations/quotas/gate.ts',
    ],
    [
      'reads of large servers',
      `${formatTenantAndTotal({ ...largeServerLimits, total: largeServerLimits.maxConcurrent })} concurrently, ${formatShare(largeServerLimits.cpuShare())}, queue timeout ${formatDuration(largeServerLimits.queueTimeoutMs)}`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['job threads of a process', formatCount(maxThreads), 'app/adapters/threads.ts'],
    [
      'queued jobs, and queue timeout',
      `${formatTenantAndTotal(jobQueue)}; ${formatDuration(jobTimes.queueTimeoutMs)}, ${formatDuration(importTimes.queueTimeoutMs)} for imports`,
      'app/adapters/threads.ts',
    ],
    [
      'job timeout',
      `${formatDuration(jobTimes.limitMs)}, ${formatDuration(importTimes.limitMs)} for an import`,
      'app/adapters/threads.ts',
    ],
    ['concurrent imports', formatTenantAndTotal(maxConcurrentImports), 'app/adapters/importing.ts'],
    ['records per export', formatCount(maxExported), 'operations/calls/call-records.ts'],
  ],
  Playground: [
    ['concurrent model requests', formatTenantAndTotal(maxConcurrentModels), 'operations/quotas/gate.ts'],
    ['model responses to one question', formatCount(maxModelSteps), 'domain/model.ts'],
    ['a tool list', formatSize(maxToolListBytes), 'gateway/hosted/served.ts'],
    ['messages in a conversation', formatCount(maxMessages), 'operations/playground/ask-model.ts'],
    [
      'a model response',
      `${formatSize(maxModelResponseBytes)}, ${formatDuration(modelTimeoutMs)}, ${maxCharacters} characters in ${maxParts} texts and calls`,
      'gateway/models/',
    ],
    ['an event in a model response', `${maxEventLength} characters`, 'gateway/models/event-stream.ts'],
  ],
  'Sizes of requests': [
    ['a request body', formatBodyLimits(bodyLimits), 'domain/json/body-limits.ts'],
    ['a body with a configuration', formatBodyLimits(configurationLimits), 'domain/json/body-limits.ts'],
    ['a body for an operation without long fields', formatBodyLimits(eventLoopLimits), 'domain/json/body-limits.ts'],
    ['a body for a login', formatSize(maxLoginBodyBytes), 'oauth/router.ts'],
    [
      'concurrent incoming bodies larger than that of a configuration',
      formatTenantAndTotal(maxLargeBodies),
      'manage/rest.ts',
    ],
    ['path and query of an API request', `${formatCount(maxRequestTargetLength)} characters`, 'domain/http/values.ts'],
    ['a header value from an argument', `${formatCount(maxHeaderLength)} characters`, 'domain/http/values.ts'],
    ['pairs in a query or a form', formatCount(maxParameters), 'domain/http/values.ts'],
    [
      'a fetched description; a YAML description',
      `${formatSize(maxDocumentBytes)}; ${formatSize(documentLimits.yamlBytes)}`,
      'import/document/parse-document.ts',
    ],
    ['an uploaded description', formatSize(maxDocumentCharacters), 'import/plan-outline.ts'],
    ['files in a description', `${maxFiles}, ${formatSize(maxBundleCharacters)}`, 'import/bundle.ts'],
    ['operations in a description', formatCount(maxOperations), 'import/read-description.ts'],
    ['timeout for fetching a description', formatDuration(fetchTimeoutMs), 'app/adapters/fetch-document.ts'],
  ],
  'Results and files': [
    [
      'a response, if `response_limit_bytes` is absent',
      formatSize(defaultLimitBytes),
      'gateway/hosted/hosted-server.ts',
    ],
    ['a file that is embedded in the result', formatSize(maxInlineBytes), 'domain/files/file-names.ts'],
    [
      'stored files of a workspace',
      `${formatCount(mostOfFiles.files)}, ${formatSize(mostOfFiles.bytes)}, ${formatDuration(fileRetentionMs)}`,
      'store/calls/files.ts',
    ],
    [
      'files that a call passes by URL',
      `${maxPassedFiles.files}, ${formatSize(maxPassedFiles.bytes)}`,
      'gateway/files/given-files.ts',
    ],
    ['concurrent downloads', formatTenantAndTotal(maxDownloads), 'gateway/files/file-listener.ts'],
    [
      'stored remainders of long results of a workspace',
      `${formatCount(maxStored.rows)}, ${formatSize(maxStored.characters)}, ${formatDuration(remainderRetentionMs)}`,
      'store/calls/answer-pieces.ts',
    ],
    ['a capture', formatSize(maxCaptureBytes), 'gateway/captures/fit-capture.ts'],
    [
      'stored captures',
      `${formatCount(maxCapturesPerServer)} per server, ${formatCount(maxCapturesPerWorkspace)} per workspace, ${formatDuration(captureRetentionMs)}`,
      'store/calls/captures.ts',
    ],
  ],
  'Client connections': [
    [
      'connections of a process',
      `${formatCount(maxClientConnections)}, fewer if there are fewer file descriptors`,
      'process/start.ts',
    ],
    ['pipelined requests of a connection', formatCount(maxPipelined), 'edge/client-connections.ts'],
    [
      'time to send the headers; a whole request',
      `${formatDuration(headersTimeoutMs)}; ${formatDuration(requestTimeoutMs)}`,
      'process/start.ts',
    ],
    [
      'time to read a response',
      `${formatDuration(slowReaderMs)}, plus the same for each started ${formatSize(deadlineBytes)}`,
      'edge/unread-answers.ts',
    ],
    ['the same if memory is low', formatDuration(overLimitMs), 'edge/unread-answers.ts'],
    [
      'time to read a chunk of a file',
      `${formatDuration(slowReaderMs)} for ${formatSize(fileChunkBytes)}`,
      'gateway/files/file-listener.ts',
    ],
    ['idle timeout of a connection', formatDuration(idleTimeoutMs), 'process/start.ts'],
    ['time for running calls to finish when the service stops', formatDuration(shutdownTimeoutMs), 'process/start.ts'],
  ],
  'Connections to APIs': [
    ['connections of a process', formatCount(maxUpstreamConnections), 'outbound/connections.ts'],
    ['connections per workspace, origin, and credential', formatCount(maxPerPool), 'outbound/connections.ts'],
    ['idle connections per creator', formatCount(maxIdlePerTenant), 'outbound/connections.ts'],
    [
      'keep-alive time of an idle connection',
      `${formatDuration(keepAliveMs)}, ${formatDuration(firstKeepAliveMs)} after its first request`,
      'outbound/connections.ts',
    ],
  ],
  Logins: [
    [
      'active logins of a workspace, and ended ones',
      `${formatSize(maxLoginBytesPerWorkspace)} each`,
      'store/pruning/prune-logins.ts',
    ],
    [
      'new logins per minute',
      `${formatSize(maxLoginBytesPerMinute.ofTenant)} per creator, ${formatSize(maxLoginBytesPerMinute.ofServer)} per server`,
      'store/logins/grants.ts',
    ],
    ['passthrough tokens of a workspace', formatCount(maxPassthroughTokens), 'store/pruning/prune-logins.ts'],
    ['pending logins of a browser', formatCount(maxInProgress), 'oauth/consent.ts'],
    ['agents of a person at the management server', formatCount(maxAgentsPerPerson), 'store/logins/grants.ts'],
    ['sessions of a person in the dashboard', formatCount(maxSessionsPerPerson), 'store/people/sessions.ts'],
    ['response timeout of a provider', formatDuration(durations.providerTimeout), 'oauth/parts.ts'],
    [
      'consecutive failed renewals without a reason that end a login',
      `${refusalsToEnd} over ${formatDuration(refusalPeriodToEndMs)}`,
      'oauth/refresh-refusals.ts',
    ],
    ['time for the consent, and for the login', `${formatDuration(durations.consent)} each`, 'oauth/parts.ts'],
    [
      'lifetime of a code; an access token; an unused refresh token',
      `${formatDuration(durations.code)}; ${formatDuration(durations.access)}; ${formatDuration(durations.refresh)}`,
      'oauth/parts.ts',
    ],
    [
      'audit events of a server per day',
      `${formatCount(maxLoginEventsPerDay.login)} logins, ${formatCount(maxLoginEventsPerDay.loginRevoked)} ended by agents, ${maxLoginEventsPerDay.loginFailed} failed`,
      'store/audit-events.ts',
    ],
  ],
  'What a workspace stores': [
    ...quotaNames.map(
      (name): Limit => [
        `${quotaKinds[name].description} (quota \`${name}\`)`,
        formatCount(quotaKinds[name].defaultValue),
        'domain/quotas.ts',
      ],
    ),
    ['tools of a server, regardless of quotas', formatCount(maxTools), 'domain/config/server-config.ts'],
    ['arguments of a tool', formatCount(maxArguments), 'domain/config/input-schema.ts'],
    ['`url` of a tool', `${formatCount(maxUrlLength)} characters`, 'domain/config/tool.ts'],
    ['views of a server', formatCount(maxViews), 'domain/config/view.ts'],
    ['models of a workspace', formatCount(maxModels), 'operations/playground/models.ts'],
    ['secrets of a server', formatCount(maxSecrets), 'operations/servers/secrets.ts'],
    ['stored versions of a server', formatSize(maxVersionBytes), 'store/servers/server-versions.ts'],
    ['stored imports of a server', formatCount(maxImports), 'store/servers/imports.ts'],
    ['watched descriptions', formatCount(maxWatched), 'operations/imports/watch-operations.ts'],
    ['keys in a chain, each created with the previous one', formatCount(maxKeyChainLength), 'store/api-keys.ts'],
    ['revoked and expired keys', formatCount(maxEndedKeys), 'store/pruning/prune-people.ts'],
    ['an invitation', formatDuration(invitationLifetimeMs), 'store/people/members.ts'],
    ['workspaces of a person', formatCount(maxWorkspaces), 'operations/people/workspaces.ts'],
    [
      'workspaces that a person creates in total, and per day',
      formatCount(maxCreated),
      'operations/people/add-workspace.ts',
    ],
    ['a deleted server that can be restored', formatDuration(restorePeriodMs), 'store/servers/deleted-servers.ts'],
    ['webhooks', formatCount(maxWebhooks), 'domain/notices.ts'],
    [
      'notifications',
      `${formatCount(maxNotificationsPerDay)} per day, stored for ${formatDuration(notificationRetentionMs)}`,
      'domain/notices.ts',
    ],
    ['details of an audit event', formatSize(maxDetailLength), 'store/audit-events.ts'],
    [
      `details above ${formatCount(maxUnmeteredDetailLength)} characters, per creator and day`,
      formatSize(maxDetailCharsPerDay),
      'store/audit-events.ts',
    ],
  ],
  'Memory of a process': [
    [
      'bodies, arguments, responses, and configurations in use',
      `a quarter, at least ${formatSize(minWorkBytes)}; a creator at most half of the free memory`,
      'app/process-memory.ts',
    ],
    ['allocations that are not counted', `up to ${formatSize(minCountedBytes)}`, 'domain/work/memory-budget.ts'],
    [
      'compiled servers',
      `${formatCount(maxCachedServers)}, ${formatCount(maxCompiledCharacters)} characters`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['API keys', formatCount(maxCachedKeys), 'store/api-keys.ts'],
    ['verified tokens', formatCount(maxVerifiedCallers), 'gateway/callers/resolve-caller.ts'],
    ['logins in use', formatCount(maxCachedGrants), 'oauth/provider-tokens.ts'],
    ['addresses per limit', formatCount(defaultMaxAddresses), 'edge/address-limit.ts'],
    ['circuit breakers', formatCount(maxCircuits), 'gateway/limits/circuits.ts'],
  ],
};

/** Generates the page of all limits from the constants in the code. */
export function limitsPage(generated: string): string {
  const tables = Object.entries(sections).map(([title, limits]) => {
    const rows = limits.map(
      ([resource, limit, source]) => `| ${resource} | ${limit} | [${source}](../../src/${source}) |`,
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
