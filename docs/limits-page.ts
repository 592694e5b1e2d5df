import { fetchedBytes, fetchMs } from '../src/app/adapters/fetch-document.ts';
import { mostImportsAtOnce } from '../src/app/adapters/importing.ts';
import { importTimes, jobQueue, jobTimes, mostThreads } from '../src/app/adapters/threads.ts';
import { leastWork } from '../src/app/process-memory.ts';
import { loginRequestsPerMinute } from '../src/app/web.ts';
import { maxArguments } from '../src/domain/config/input-schema.ts';
import { mostTools } from '../src/domain/config/server-config.ts';
import { maxTimeoutMs, maxUrlLength } from '../src/domain/config/tool.ts';
import { mostViews } from '../src/domain/config/view.ts';
import { fileChunkBytes, fileKeptMs, mostInlineBytes } from '../src/domain/files/file-names.ts';
import { mostHeaderLength, mostPairs, mostUrlLength } from '../src/domain/http/values.ts';
import { bodyLimits, configurationLimits, shortLimits } from '../src/domain/json/body-limits.ts';
import type { BodyLimits } from '../src/domain/json/json-scan.ts';
import { workspaceShare } from '../src/domain/limits.ts';
import { mostModelSteps } from '../src/domain/model.ts';
import { mostNoticesInDay, mostWebhooks, noticesKeptMs } from '../src/domain/notices.ts';
import { restKeptMs } from '../src/domain/pieces/read-more.ts';
import { quotaKinds, quotaNames } from '../src/domain/quotas.ts';
import { usualPatienceMs, usualWaiting } from '../src/domain/work/gate.ts';
import { uncountedBytes } from '../src/domain/work/memory-budget.ts';
import { mostAddresses, mostFailed } from '../src/edge/address-limit.ts';
import { mostWaiting } from '../src/edge/client-connections.ts';
import { chargedLength, lookupsOfAddress, lookupsOfAll, sentBytes } from '../src/edge/strangers.ts';
import { bytesOfDeadline, hastyMs } from '../src/edge/unread-answers.ts';
import { mostRefusedRecords, mostWaitingRecords } from '../src/gateway/call/call-log.ts';
import { mostRedirects } from '../src/gateway/call/follow-redirects.ts';
import { knownMs } from '../src/gateway/callers/caller.ts';
import { mostKnown } from '../src/gateway/callers/resolve-caller.ts';
import { longestCapture } from '../src/gateway/captures/fit-capture.ts';
import { mostDownloads } from '../src/gateway/files/file-listener.ts';
import { mostGiven } from '../src/gateway/files/given-files.ts';
import { defaultLimitBytes } from '../src/gateway/hosted/hosted-server.ts';
import { mostCompiledCharacters, mostServersRemembered, timeOfLarge } from '../src/gateway/hosted/hosted-servers.ts';
import { mostOfferedBytes } from '../src/gateway/hosted/served.ts';
import { circuitOpenMs, circuitWindowMs, leastFailures, mostCircuits } from '../src/gateway/limits/circuits.ts';
import { queueLength } from '../src/gateway/limits/lanes.ts';
import { burstMs, shedAboveMs, usualCapacity } from '../src/gateway/limits/limits.ts';
import { maxEventLength } from '../src/gateway/models/event-stream.ts';
import { maxCharacters, maxParts } from '../src/gateway/models/model-response.ts';
import { maxResponseBytes, modelTimeoutMs } from '../src/gateway/models/send-question.ts';
import { maxBatch, maxBatchLength } from '../src/gateway/protocol/legacy.ts';
import { mostFileCharacters, mostFiles } from '../src/import/bundle.ts';
import { documentLimits } from '../src/import/document/parse-document.ts';
import { mostDocumentCharacters } from '../src/import/plan-outline.ts';
import { mostOperations } from '../src/import/read-description.ts';
import { mostLargeBodies } from '../src/manage/rest.ts';
import { mostInProgress } from '../src/oauth/consent.ts';
import { spans } from '../src/oauth/parts.ts';
import { mostGrantsRemembered } from '../src/oauth/provider-tokens.ts';
import { refusalsToEnd, refusedToEndMs } from '../src/oauth/refresh-refusals.ts';
import { mostLoginBodyBytes } from '../src/oauth/router.ts';
import { maxExported } from '../src/operations/calls/call-records.ts';
import { mostWatched } from '../src/operations/imports/watch-operations.ts';
import { maxCreated } from '../src/operations/people/add-workspace.ts';
import { maxWorkspaces } from '../src/operations/people/workspaces.ts';
import { mostMessages } from '../src/operations/playground/ask-model.ts';
import { mostModels } from '../src/operations/playground/models.ts';
import { modelsAtOnce, operationsAtOnce, waitingReports } from '../src/operations/quotas/gate.ts';
import { mostSecrets } from '../src/operations/servers/secrets.ts';
import {
  firstKeepAliveMs,
  keepAliveMs,
  mostIdlePerTenant,
  mostPerPool,
  mostUpstreamConnections,
} from '../src/outbound/connections.ts';
import { drainMs, mostForClients, usualSurroundings } from '../src/process/start.ts';
import { maxMakers, mostKeysRemembered } from '../src/store/api-keys.ts';
import { mostDetailsInDay, mostLoginEventsInDay, mostOfDetail, shortDetail } from '../src/store/audit-events.ts';
import { mostOfAnswers } from '../src/store/calls/answer-pieces.ts';
import { captureKeptMs, capturesPerServer, capturesPerWorkspace } from '../src/store/calls/captures.ts';
import { mostOfFiles } from '../src/store/calls/files.ts';
import { mostAgentsOfPerson, mostInMinute } from '../src/store/logins/grants.ts';
import { invitationsKeptMs } from '../src/store/people/members.ts';
import { mostSessionsOfPerson } from '../src/store/people/sessions.ts';
import { mostBytesOfWorkspace, mostHandedOutTokens } from '../src/store/pruning/prune-logins.ts';
import { mostEndedKeys } from '../src/store/pruning/prune-people.ts';
import { restorableMs } from '../src/store/servers/deleted-servers.ts';
import { mostImports } from '../src/store/servers/imports.ts';
import { mostVersionBytes } from '../src/store/servers/server-versions.ts';
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
const ofBoth = ({ ofTenant, ofAll }: { ofTenant: number; ofAll: number }) =>
  `${ofTenant} per creator, ${count(ofAll)} per process`;
const setting = (name: keyof typeof variables) => `${count(Number(variables[name].fallback))} (\`${name}\`)`;

const { queueMs, slowReaderMs, headersMs, requestMs, silentMs, reportShare } = usualSurroundings;

const sections: Record<string, Bound[]> = {
  'Tool calls': [
    ['calls per second of a server', setting('CALLS_PER_SECOND'), 'gateway/limits/lanes.ts'],
    ['concurrent calls of a server', setting('CONCURRENT_CALLS'), 'gateway/limits/lanes.ts'],
    ['concurrent calls with a credential', setting('CONCURRENT_CALLS_PER_KEY'), 'gateway/limits/lanes.ts'],
    ['calls of a workspace', `${workspaceShare} times the limits of a server`, 'domain/limits.ts'],
    ['burst of an idle server', `${span(burstMs)} of its rate`, 'gateway/limits/limits.ts'],
    ['queued calls per limit', count(queueLength), 'gateway/limits/lanes.ts'],
    ['queue timeout of a call', span(queueMs), 'process/start.ts'],
    [
      'calls of a process, including queued ones',
      `${count(usualCapacity)}; a creator at most as many as remain free for others`,
      'gateway/limits/limits.ts',
    ],
    ['event-loop lag, twice in a row, above which calls are rejected', span(shedAboveMs), 'gateway/limits/limits.ts'],
    [
      'failures that open the circuit breaker of an origin',
      `${leastFailures}, and more than half, within ${span(circuitWindowMs)}`,
      'gateway/limits/circuits.ts',
    ],
    ['time that a circuit breaker stays open', span(circuitOpenMs), 'gateway/limits/circuits.ts'],
    ['`timeout_ms`', span(maxTimeoutMs), 'domain/config/tool.ts'],
    ['redirects that a tool follows', count(mostRedirects), 'gateway/call/follow-redirects.ts'],
    [
      'messages in a batch, and size of its responses',
      `${maxBatch}; ${size(maxBatchLength)}`,
      'gateway/protocol/legacy.ts',
    ],
    [
      'records of rejected calls per server, minute, and process',
      count(mostRefusedRecords),
      'gateway/call/call-log.ts',
    ],
    ['queued call records of a process', count(mostWaitingRecords), 'gateway/call/call-log.ts'],
  ],
  'Addresses and unverified callers': [
    ['rejected requests per address and minute', setting('REFUSALS_PER_MINUTE'), 'edge/strangers.ts'],
    ['the same per IPv6 /56 and /48', '4 times, and 16 times', 'domain/limits.ts'],
    [
      'unit that counts as one rejected request',
      `${size(sentBytes)} of tool lists; ${count(chargedLength)} characters of an unverified token`,
      'edge/strangers.ts',
    ],
    [
      'credential queries per second of an address above that',
      `${lookupsOfAddress}; ${lookupsOfAll} for all such addresses`,
      'edge/strangers.ts',
    ],
    ['requests to logins and sign-in per address and minute', count(loginRequestsPerMinute), 'app/web.ts'],
    [
      'rejected codes per minute at provider callbacks',
      `${mostFailed.ofAddress} per address, ${mostFailed.ofProvider} per provider`,
      'edge/address-limit.ts',
    ],
    ['time that a token counts as verified after a 2xx response', span(knownMs), 'gateway/callers/caller.ts'],
  ],
  Operations: [
    ['concurrent reads', count(operationsAtOnce.read), 'operations/quotas/gate.ts'],
    ['concurrent changes', `${operationsAtOnce.write}; one write per creator`, 'operations/quotas/gate.ts'],
    ['concurrent tests and connection checks', count(operationsAtOnce.call), 'operations/quotas/gate.ts'],
    [
      'queued operations of each kind, and queue timeout',
      `${usualWaiting}; ${span(usualPatienceMs)}`,
      'domain/work/gate.ts',
    ],
    ['lists, statistics, and exports of a creator', `1 at a time, ${part(reportShare)}`, 'operations/quotas/gate.ts'],
    [
      'queued ones, and queue timeout',
      `${waitingReports.waiting}; ${span(waitingReports.patienceMs)}`,
      'operations/quotas/gate.ts',
    ],
    [
      'reads of large servers',
      `${ofBoth({ ...timeOfLarge, ofAll: timeOfLarge.atOnce })} concurrently, ${part(timeOfLarge.share())}, queue timeout ${span(timeOfLarge.patienceMs)}`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['job threads of a process', count(mostThreads), 'app/adapters/threads.ts'],
    [
      'queued jobs, and queue timeout',
      `${ofBoth(jobQueue)}; ${span(jobTimes.waitMs)}, ${span(importTimes.waitMs)} for imports`,
      'app/adapters/threads.ts',
    ],
    ['job timeout', `${span(jobTimes.limitMs)}, ${span(importTimes.limitMs)} for an import`, 'app/adapters/threads.ts'],
    ['concurrent imports', ofBoth(mostImportsAtOnce), 'app/adapters/importing.ts'],
    ['records per export', count(maxExported), 'operations/calls/call-records.ts'],
  ],
  Playground: [
    ['concurrent model requests', ofBoth(modelsAtOnce), 'operations/quotas/gate.ts'],
    ['model responses to one question', count(mostModelSteps), 'domain/model.ts'],
    ['a tool list', size(mostOfferedBytes), 'gateway/hosted/served.ts'],
    ['messages in a conversation', count(mostMessages), 'operations/playground/ask-model.ts'],
    [
      'a model response',
      `${size(maxResponseBytes)}, ${span(modelTimeoutMs)}, ${maxCharacters} characters in ${maxParts} texts and calls`,
      'gateway/models/',
    ],
    ['an event in a model response', `${maxEventLength} characters`, 'gateway/models/event-stream.ts'],
  ],
  'Sizes of requests': [
    ['a request body', body(bodyLimits), 'domain/json/body-limits.ts'],
    ['a body with a configuration', body(configurationLimits), 'domain/json/body-limits.ts'],
    ['a body for an operation without long fields', body(shortLimits), 'domain/json/body-limits.ts'],
    ['a body for a login', size(mostLoginBodyBytes), 'oauth/router.ts'],
    ['concurrent incoming bodies larger than that of a configuration', ofBoth(mostLargeBodies), 'manage/rest.ts'],
    ['path and query of an API request', `${count(mostUrlLength)} characters`, 'domain/http/values.ts'],
    ['a header value from an argument', `${count(mostHeaderLength)} characters`, 'domain/http/values.ts'],
    ['pairs in a query or a form', count(mostPairs), 'domain/http/values.ts'],
    [
      'a fetched description; a YAML description',
      `${size(fetchedBytes)}; ${size(documentLimits.yamlBytes)}`,
      'import/document/parse-document.ts',
    ],
    ['an uploaded description', size(mostDocumentCharacters), 'import/plan-outline.ts'],
    ['files in a description', `${mostFiles}, ${size(mostFileCharacters)}`, 'import/bundle.ts'],
    ['operations in a description', count(mostOperations), 'import/read-description.ts'],
    ['timeout for fetching a description', span(fetchMs), 'app/adapters/fetch-document.ts'],
  ],
  'Answers and files': [
    ['a response, if `response_limit_bytes` is absent', size(defaultLimitBytes), 'gateway/hosted/hosted-server.ts'],
    ['a file that is embedded in the result', size(mostInlineBytes), 'domain/files/file-names.ts'],
    [
      'stored files of a workspace',
      `${count(mostOfFiles.files)}, ${size(mostOfFiles.bytes)}, ${span(fileKeptMs)}`,
      'store/calls/files.ts',
    ],
    ['files that a call passes by URL', `${mostGiven.files}, ${size(mostGiven.bytes)}`, 'gateway/files/given-files.ts'],
    ['concurrent downloads', ofBoth(mostDownloads), 'gateway/files/file-listener.ts'],
    [
      'stored remainders of long results of a workspace',
      `${count(mostOfAnswers.rows)}, ${size(mostOfAnswers.characters)}, ${span(restKeptMs)}`,
      'store/calls/answer-pieces.ts',
    ],
    ['a capture', size(longestCapture), 'gateway/captures/fit-capture.ts'],
    [
      'stored captures',
      `${count(capturesPerServer)} per server, ${count(capturesPerWorkspace)} per workspace, ${span(captureKeptMs)}`,
      'store/calls/captures.ts',
    ],
  ],
  'Client connections': [
    [
      'connections of a process',
      `${count(mostForClients)}, fewer if there are fewer file descriptors`,
      'process/start.ts',
    ],
    ['pipelined requests of a connection', count(mostWaiting), 'edge/client-connections.ts'],
    ['time to send the headers; a whole request', `${span(headersMs)}; ${span(requestMs)}`, 'process/start.ts'],
    [
      'time to read a response',
      `${span(slowReaderMs)}, plus the same for each started ${size(bytesOfDeadline)}`,
      'edge/unread-answers.ts',
    ],
    ['the same if memory is low', span(hastyMs), 'edge/unread-answers.ts'],
    [
      'time to read a chunk of a file',
      `${span(slowReaderMs)} for ${size(fileChunkBytes)}`,
      'gateway/files/file-listener.ts',
    ],
    ['idle timeout of a connection', span(silentMs), 'process/start.ts'],
    ['time for running calls to finish when the service stops', span(drainMs), 'process/start.ts'],
  ],
  'Connections to APIs': [
    ['connections of a process', count(mostUpstreamConnections), 'outbound/connections.ts'],
    ['connections per workspace, origin, and credential', count(mostPerPool), 'outbound/connections.ts'],
    ['idle connections per creator', count(mostIdlePerTenant), 'outbound/connections.ts'],
    [
      'keep-alive time of an idle connection',
      `${span(keepAliveMs)}, ${span(firstKeepAliveMs)} after its first request`,
      'outbound/connections.ts',
    ],
  ],
  Logins: [
    [
      'active logins of a workspace, and ended ones',
      `${size(mostBytesOfWorkspace)} each`,
      'store/pruning/prune-logins.ts',
    ],
    [
      'new logins per minute',
      `${size(mostInMinute.ofTenant)} per creator, ${size(mostInMinute.ofServer)} per server`,
      'store/logins/grants.ts',
    ],
    ['passthrough tokens of a workspace', count(mostHandedOutTokens), 'store/pruning/prune-logins.ts'],
    ['pending logins of a browser', count(mostInProgress), 'oauth/consent.ts'],
    ['agents of a person at the management server', count(mostAgentsOfPerson), 'store/logins/grants.ts'],
    ['sessions of a person in the dashboard', count(mostSessionsOfPerson), 'store/people/sessions.ts'],
    ['response timeout of a provider', span(spans.askProvider), 'oauth/parts.ts'],
    [
      'consecutive failed renewals without a reason that end a login',
      `${refusalsToEnd} over ${span(refusedToEndMs)}`,
      'oauth/refresh-refusals.ts',
    ],
    ['time for the consent, and for the login', `${span(spans.consent)} each`, 'oauth/parts.ts'],
    [
      'lifetime of a code; an access token; an unused refresh token',
      `${span(spans.code)}; ${span(spans.access)}; ${span(spans.refresh)}`,
      'oauth/parts.ts',
    ],
    [
      'audit events of a server per day',
      `${count(mostLoginEventsInDay.login)} logins, ${count(mostLoginEventsInDay.loginRevoked)} ended by agents, ${mostLoginEventsInDay.loginFailed} failed`,
      'store/audit-events.ts',
    ],
  ],
  'What a workspace stores': [
    ...quotaNames.map(
      (name): Bound => [
        `${quotaKinds[name].what} (quota \`${name}\`)`,
        count(quotaKinds[name].fallback),
        'domain/quotas.ts',
      ],
    ),
    ['tools of a server, regardless of quotas', count(mostTools), 'domain/config/server-config.ts'],
    ['arguments of a tool', count(maxArguments), 'domain/config/input-schema.ts'],
    ['`url` of a tool', `${count(maxUrlLength)} characters`, 'domain/config/tool.ts'],
    ['views of a server', count(mostViews), 'domain/config/view.ts'],
    ['models of a workspace', count(mostModels), 'operations/playground/models.ts'],
    ['secrets of a server', count(mostSecrets), 'operations/servers/secrets.ts'],
    ['stored versions of a server', size(mostVersionBytes), 'store/servers/server-versions.ts'],
    ['stored imports of a server', count(mostImports), 'store/servers/imports.ts'],
    ['watched descriptions', count(mostWatched), 'operations/imports/watch-operations.ts'],
    ['keys in a chain, each created with the previous one', count(maxMakers), 'store/api-keys.ts'],
    ['revoked and expired keys', count(mostEndedKeys), 'store/pruning/prune-people.ts'],
    ['an invitation', span(invitationsKeptMs), 'store/people/members.ts'],
    ['workspaces of a person', count(maxWorkspaces), 'operations/people/workspaces.ts'],
    ['workspaces that a person creates in total, and per day', count(maxCreated), 'operations/people/add-workspace.ts'],
    ['a deleted server that can be restored', span(restorableMs), 'store/servers/deleted-servers.ts'],
    ['webhooks', count(mostWebhooks), 'domain/notices.ts'],
    ['notifications', `${count(mostNoticesInDay)} per day, stored for ${span(noticesKeptMs)}`, 'domain/notices.ts'],
    ['details of an audit event', size(mostOfDetail), 'store/audit-events.ts'],
    [
      `details above ${count(shortDetail)} characters, per creator and day`,
      size(mostDetailsInDay),
      'store/audit-events.ts',
    ],
  ],
  'Memory of a process': [
    [
      'bodies, arguments, responses, and configurations in use',
      `a quarter, at least ${size(leastWork)}; a creator at most half of the free memory`,
      'app/process-memory.ts',
    ],
    ['allocations that are not counted', `up to ${size(uncountedBytes)}`, 'domain/work/memory-budget.ts'],
    [
      'compiled servers',
      `${count(mostServersRemembered)}, ${count(mostCompiledCharacters)} characters`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['API keys', count(mostKeysRemembered), 'store/api-keys.ts'],
    ['verified tokens', count(mostKnown), 'gateway/callers/resolve-caller.ts'],
    ['logins in use', count(mostGrantsRemembered), 'oauth/provider-tokens.ts'],
    ['addresses per limit', count(mostAddresses), 'edge/address-limit.ts'],
    ['circuit breakers', count(mostCircuits), 'gateway/limits/circuits.ts'],
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
