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
type Bound = [what: string, bound: string, where: string];

const count = (value: number) => value.toLocaleString('en');

/** Formats a size in the shortest unit: 65,536 bytes as 64 KiB, and 20,000,000 bytes as 20 MB. */
function size(bytes: number): string {
  for (const [unit, name] of [
    [1024 * 1024, 'MiB'],
    [1_000_000, 'MB'],
    [1024, 'KiB'],
  ] as const)
    if (bytes >= unit && bytes % unit === 0) return `${count(bytes / unit)} ${name}`;
  return `${count(bytes)} bytes`;
}

function span(ms: number): string {
  for (const [unit, name] of [
    [24 * 60 * 60_000, 'days'],
    [60 * 60_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ] as const)
    if (ms >= unit && ms % unit === 0) return ms === unit && name === 'days' ? '1 day' : `${ms / unit} ${name}`;
  return `${count(ms)} ms`;
}

const part = (share: number) => `${share * 100}% of the time`;
const body = ({ bytes, elements, names, depth }: BodyLimits) =>
  `${size(bytes)}, ${count(elements)} elements, ${count(names)} names, ${depth} levels`;
const ofBoth = ({ perTenant, total }: { perTenant: number; total: number }) =>
  `${perTenant} per creator, ${count(total)} per process`;
const setting = (name: keyof typeof variables) => `${count(Number(variables[name].fallback))} (\`${name}\`)`;

const { queueMs, slowReaderMs, headersTimeoutMs, requestTimeoutMs, idleTimeoutMs, reportShare } = defaultRuntimeOptions;

const sections: Record<string, Bound[]> = {
  'Tool calls': [
    ['calls per second of a server', setting('CALLS_PER_SECOND'), 'gateway/limits/lanes.ts'],
    ['concurrent calls of a server', setting('CONCURRENT_CALLS'), 'gateway/limits/lanes.ts'],
    ['concurrent calls with a credential', setting('CONCURRENT_CALLS_PER_KEY'), 'gateway/limits/lanes.ts'],
    ['calls of a workspace', `${workspaceLimitFactor} times the limits of a server`, 'domain/limits.ts'],
    ['burst of an idle server', `${span(burstMs)} of its rate`, 'gateway/limits/limits.ts'],
    ['queued calls per limit', count(maxQueueLength), 'gateway/limits/lanes.ts'],
    ['queue timeout of a call', span(queueMs), 'process/start.ts'],
    [
      'calls of a process, including queued ones',
      `${count(defaultCapacity)}; a creator at most as many as remain free for others`,
      'gateway/limits/limits.ts',
    ],
    ['event-loop lag, twice in a row, above which calls are rejected', span(shedAboveMs), 'gateway/limits/limits.ts'],
    [
      'failures that open the circuit breaker of an origin',
      `${minFailures}, and more than half, within ${span(circuitWindowMs)}`,
      'gateway/limits/circuits.ts',
    ],
    ['time that a circuit breaker stays open', span(circuitOpenMs), 'gateway/limits/circuits.ts'],
    ['`timeout_ms`', span(maxTimeoutMs), 'domain/config/tool.ts'],
    ['redirects that a tool follows', count(maxRedirects), 'gateway/call/follow-redirects.ts'],
    [
      'messages in a batch, and size of its responses',
      `${maxBatchMessages}; ${size(maxBatchLength)}`,
      'gateway/protocol/legacy.ts',
    ],
    ['records of rejected calls per server, minute, and process', count(maxRefusedRecords), 'gateway/call/call-log.ts'],
    ['queued call records of a process', count(maxWaitingRecords), 'gateway/call/call-log.ts'],
  ],
  'Addresses and unverified callers': [
    ['rejected requests per address and minute', setting('REFUSALS_PER_MINUTE'), 'edge/strangers.ts'],
    ['the same per IPv6 /56 and /48', '4 times, and 16 times', 'domain/limits.ts'],
    [
      'unit that counts as one rejected request',
      `${size(chargedBytes)} of tool lists; ${count(chargedLength)} characters of an unverified token`,
      'edge/strangers.ts',
    ],
    [
      'credential queries per second of an address above that',
      `${maxQueriesPerAddress}; ${maxQueries} for all such addresses`,
      'edge/strangers.ts',
    ],
    ['requests to logins and sign-in per address and minute', count(loginRequestsPerMinute), 'app/web.ts'],
    [
      'rejected codes per minute at provider callbacks',
      `${maxFailures.perAddress} per address, ${maxFailures.perProvider} per provider`,
      'edge/address-limit.ts',
    ],
    ['time that a token counts as verified after a 2xx response', span(verifiedTtlMs), 'gateway/callers/caller.ts'],
  ],
  Operations: [
    ['concurrent reads', count(maxConcurrentOperations.read), 'operations/quotas/gate.ts'],
    ['concurrent changes', `${maxConcurrentOperations.write}; one write per creator`, 'operations/quotas/gate.ts'],
    ['concurrent tests and connection checks', count(maxConcurrentOperations.call), 'operations/quotas/gate.ts'],
    [
      'queued operations of each kind, and queue timeout',
      `${defaultMaxQueued}; ${span(defaultQueueTimeoutMs)}`,
      'domain/work/gate.ts',
    ],
    ['lists, statistics, and exports of a creator', `1 at a time, ${part(reportShare)}`, 'operations/quotas/gate.ts'],
    [
      'queued ones, and queue timeout',
      `${reportQueue.maxQueued}; ${span(reportQueue.queueTimeoutMs)}`,
      'operations/quotas/gate.ts',
    ],
    [
      'reads of large servers',
      `${ofBoth({ ...largeServerLimits, total: largeServerLimits.maxConcurrent })} concurrently, ${part(largeServerLimits.cpuShare())}, queue timeout ${span(largeServerLimits.queueTimeoutMs)}`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['job threads of a process', count(maxThreads), 'app/adapters/threads.ts'],
    [
      'queued jobs, and queue timeout',
      `${ofBoth(jobQueue)}; ${span(jobTimes.queueTimeoutMs)}, ${span(importTimes.queueTimeoutMs)} for imports`,
      'app/adapters/threads.ts',
    ],
    ['job timeout', `${span(jobTimes.limitMs)}, ${span(importTimes.limitMs)} for an import`, 'app/adapters/threads.ts'],
    ['concurrent imports', ofBoth(maxConcurrentImports), 'app/adapters/importing.ts'],
    ['records per export', count(maxExported), 'operations/calls/call-records.ts'],
  ],
  Playground: [
    ['concurrent model requests', ofBoth(maxConcurrentModels), 'operations/quotas/gate.ts'],
    ['model responses to one question', count(maxModelSteps), 'domain/model.ts'],
    ['a tool list', size(maxToolListBytes), 'gateway/hosted/served.ts'],
    ['messages in a conversation', count(maxMessages), 'operations/playground/ask-model.ts'],
    [
      'a model response',
      `${size(maxModelResponseBytes)}, ${span(modelTimeoutMs)}, ${maxCharacters} characters in ${maxParts} texts and calls`,
      'gateway/models/',
    ],
    ['an event in a model response', `${maxEventLength} characters`, 'gateway/models/event-stream.ts'],
  ],
  'Sizes of requests': [
    ['a request body', body(bodyLimits), 'domain/json/body-limits.ts'],
    ['a body with a configuration', body(configurationLimits), 'domain/json/body-limits.ts'],
    ['a body for an operation without long fields', body(eventLoopLimits), 'domain/json/body-limits.ts'],
    ['a body for a login', size(maxLoginBodyBytes), 'oauth/router.ts'],
    ['concurrent incoming bodies larger than that of a configuration', ofBoth(maxLargeBodies), 'manage/rest.ts'],
    ['path and query of an API request', `${count(maxRequestTargetLength)} characters`, 'domain/http/values.ts'],
    ['a header value from an argument', `${count(maxHeaderLength)} characters`, 'domain/http/values.ts'],
    ['pairs in a query or a form', count(maxParameters), 'domain/http/values.ts'],
    [
      'a fetched description; a YAML description',
      `${size(maxDocumentBytes)}; ${size(documentLimits.yamlBytes)}`,
      'import/document/parse-document.ts',
    ],
    ['an uploaded description', size(maxDocumentCharacters), 'import/plan-outline.ts'],
    ['files in a description', `${maxFiles}, ${size(maxBundleCharacters)}`, 'import/bundle.ts'],
    ['operations in a description', count(maxOperations), 'import/read-description.ts'],
    ['timeout for fetching a description', span(fetchTimeoutMs), 'app/adapters/fetch-document.ts'],
  ],
  'Results and files': [
    ['a response, if `response_limit_bytes` is absent', size(defaultLimitBytes), 'gateway/hosted/hosted-server.ts'],
    ['a file that is embedded in the result', size(maxInlineBytes), 'domain/files/file-names.ts'],
    [
      'stored files of a workspace',
      `${count(mostOfFiles.files)}, ${size(mostOfFiles.bytes)}, ${span(fileRetentionMs)}`,
      'store/calls/files.ts',
    ],
    [
      'files that a call passes by URL',
      `${maxPassedFiles.files}, ${size(maxPassedFiles.bytes)}`,
      'gateway/files/given-files.ts',
    ],
    ['concurrent downloads', ofBoth(maxDownloads), 'gateway/files/file-listener.ts'],
    [
      'stored remainders of long results of a workspace',
      `${count(maxStored.rows)}, ${size(maxStored.characters)}, ${span(remainderRetentionMs)}`,
      'store/calls/answer-pieces.ts',
    ],
    ['a capture', size(maxCaptureBytes), 'gateway/captures/fit-capture.ts'],
    [
      'stored captures',
      `${count(maxCapturesPerServer)} per server, ${count(maxCapturesPerWorkspace)} per workspace, ${span(captureRetentionMs)}`,
      'store/calls/captures.ts',
    ],
  ],
  'Client connections': [
    [
      'connections of a process',
      `${count(maxClientConnections)}, fewer if there are fewer file descriptors`,
      'process/start.ts',
    ],
    ['pipelined requests of a connection', count(maxPipelined), 'edge/client-connections.ts'],
    [
      'time to send the headers; a whole request',
      `${span(headersTimeoutMs)}; ${span(requestTimeoutMs)}`,
      'process/start.ts',
    ],
    [
      'time to read a response',
      `${span(slowReaderMs)}, plus the same for each started ${size(deadlineBytes)}`,
      'edge/unread-answers.ts',
    ],
    ['the same if memory is low', span(overLimitMs), 'edge/unread-answers.ts'],
    [
      'time to read a chunk of a file',
      `${span(slowReaderMs)} for ${size(fileChunkBytes)}`,
      'gateway/files/file-listener.ts',
    ],
    ['idle timeout of a connection', span(idleTimeoutMs), 'process/start.ts'],
    ['time for running calls to finish when the service stops', span(shutdownTimeoutMs), 'process/start.ts'],
  ],
  'Connections to APIs': [
    ['connections of a process', count(maxUpstreamConnections), 'outbound/connections.ts'],
    ['connections per workspace, origin, and credential', count(maxPerPool), 'outbound/connections.ts'],
    ['idle connections per creator', count(maxIdlePerTenant), 'outbound/connections.ts'],
    [
      'keep-alive time of an idle connection',
      `${span(keepAliveMs)}, ${span(firstKeepAliveMs)} after its first request`,
      'outbound/connections.ts',
    ],
  ],
  Logins: [
    [
      'active logins of a workspace, and ended ones',
      `${size(maxLoginBytesPerWorkspace)} each`,
      'store/pruning/prune-logins.ts',
    ],
    [
      'new logins per minute',
      `${size(maxLoginBytesPerMinute.ofTenant)} per creator, ${size(maxLoginBytesPerMinute.ofServer)} per server`,
      'store/logins/grants.ts',
    ],
    ['passthrough tokens of a workspace', count(maxPassthroughTokens), 'store/pruning/prune-logins.ts'],
    ['pending logins of a browser', count(maxInProgress), 'oauth/consent.ts'],
    ['agents of a person at the management server', count(maxAgentsPerPerson), 'store/logins/grants.ts'],
    ['sessions of a person in the dashboard', count(maxSessionsPerPerson), 'store/people/sessions.ts'],
    ['response timeout of a provider', span(durations.providerTimeout), 'oauth/parts.ts'],
    [
      'consecutive failed renewals without a reason that end a login',
      `${refusalsToEnd} over ${span(refusalPeriodToEndMs)}`,
      'oauth/refresh-refusals.ts',
    ],
    ['time for the consent, and for the login', `${span(durations.consent)} each`, 'oauth/parts.ts'],
    [
      'lifetime of a code; an access token; an unused refresh token',
      `${span(durations.code)}; ${span(durations.access)}; ${span(durations.refresh)}`,
      'oauth/parts.ts',
    ],
    [
      'audit events of a server per day',
      `${count(maxLoginEventsPerDay.login)} logins, ${count(maxLoginEventsPerDay.loginRevoked)} ended by agents, ${maxLoginEventsPerDay.loginFailed} failed`,
      'store/audit-events.ts',
    ],
  ],
  'What a workspace stores': [
    ...quotaNames.map(
      (name): Bound => [
        `${quotaKinds[name].description} (quota \`${name}\`)`,
        count(quotaKinds[name].defaultValue),
        'domain/quotas.ts',
      ],
    ),
    ['tools of a server, regardless of quotas', count(maxTools), 'domain/config/server-config.ts'],
    ['arguments of a tool', count(maxArguments), 'domain/config/input-schema.ts'],
    ['`url` of a tool', `${count(maxUrlLength)} characters`, 'domain/config/tool.ts'],
    ['views of a server', count(maxViews), 'domain/config/view.ts'],
    ['models of a workspace', count(maxModels), 'operations/playground/models.ts'],
    ['secrets of a server', count(maxSecrets), 'operations/servers/secrets.ts'],
    ['stored versions of a server', size(maxVersionBytes), 'store/servers/server-versions.ts'],
    ['stored imports of a server', count(maxImports), 'store/servers/imports.ts'],
    ['watched descriptions', count(maxWatched), 'operations/imports/watch-operations.ts'],
    ['keys in a chain, each created with the previous one', count(maxKeyChainLength), 'store/api-keys.ts'],
    ['revoked and expired keys', count(maxEndedKeys), 'store/pruning/prune-people.ts'],
    ['an invitation', span(invitationLifetimeMs), 'store/people/members.ts'],
    ['workspaces of a person', count(maxWorkspaces), 'operations/people/workspaces.ts'],
    ['workspaces that a person creates in total, and per day', count(maxCreated), 'operations/people/add-workspace.ts'],
    ['a deleted server that can be restored', span(restorePeriodMs), 'store/servers/deleted-servers.ts'],
    ['webhooks', count(maxWebhooks), 'domain/notices.ts'],
    [
      'notifications',
      `${count(maxNotificationsPerDay)} per day, stored for ${span(notificationRetentionMs)}`,
      'domain/notices.ts',
    ],
    ['details of an audit event', size(maxDetailLength), 'store/audit-events.ts'],
    [
      `details above ${count(maxUnmeteredDetailLength)} characters, per creator and day`,
      size(maxDetailCharsPerDay),
      'store/audit-events.ts',
    ],
  ],
  'Memory of a process': [
    [
      'bodies, arguments, responses, and configurations in use',
      `a quarter, at least ${size(minWorkBytes)}; a creator at most half of the free memory`,
      'app/process-memory.ts',
    ],
    ['allocations that are not counted', `up to ${size(minCountedBytes)}`, 'domain/work/memory-budget.ts'],
    [
      'compiled servers',
      `${count(maxCachedServers)}, ${count(maxCompiledCharacters)} characters`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['API keys', count(maxCachedKeys), 'store/api-keys.ts'],
    ['verified tokens', count(maxVerifiedCallers), 'gateway/callers/resolve-caller.ts'],
    ['logins in use', count(maxCachedGrants), 'oauth/provider-tokens.ts'],
    ['addresses per limit', count(defaultMaxAddresses), 'edge/address-limit.ts'],
    ['circuit breakers', count(maxCircuits), 'gateway/limits/circuits.ts'],
  ],
};

/** Generates the page of all limits from the constants in the code. */
export function limitsPage(generated: string): string {
  const tables = Object.entries(sections).map(([title, bounds]) => {
    const rows = bounds.map(([what, bound, where]) => `| ${what} | ${bound} | [${where}](../../src/${where}) |`);
    return [`## ${title}\n`, '| resource | limit | source |', '|---|---|---|', ...rows, ''].join('\n');
  });
  return [
    '# All limits',
    generated,
    'All limits of the service. [Limits](../limits.md) explains what happens above a limit, and who can change it. A name in capitals is a [variable](environment.md). "Per creator" covers all workspaces that one person created; a workspace that no person created counts separately.\n',
    ...tables,
  ].join('\n');
}
