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

/** What is bounded, by how much, and the file of the sources that holds it. */
type Bound = [what: string, bound: string, where: string];

const count = (value: number) => value.toLocaleString('en');

/** A size in the unit that writes it shortest: 65,536 bytes are 64 KiB, and 20,000,000 are 20 MB. */
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

const part = (share: number) => `${share * 100} % of the time`;
const body = ({ bytes, elements, names, depth }: BodyLimits) =>
  `${size(bytes)}, ${count(elements)} elements, ${count(names)} names, ${depth} levels`;
const ofBoth = ({ ofTenant, ofAll }: { ofTenant: number; ofAll: number }) =>
  `${ofTenant} of a creator, ${count(ofAll)} of a process`;
const setting = (name: keyof typeof variables) => `${count(Number(variables[name].fallback))} (\`${name}\`)`;

const { queueMs, slowReaderMs, headersMs, requestMs, silentMs, reportShare } = usualSurroundings;

const sections: Record<string, Bound[]> = {
  'Calls of tools': [
    ['calls a second of a server', setting('CALLS_PER_SECOND'), 'gateway/limits/lanes.ts'],
    ['calls at once of a server', setting('CONCURRENT_CALLS'), 'gateway/limits/lanes.ts'],
    ['calls at once of a credential', setting('CONCURRENT_CALLS_PER_KEY'), 'gateway/limits/lanes.ts'],
    ['calls of a workspace', `${workspaceShare} times those of a server`, 'domain/limits.ts'],
    ['rate that an idle server may use at once', `that of ${span(burstMs)}`, 'gateway/limits/limits.ts'],
    ['calls that wait for a slot, behind one limit', count(queueLength), 'gateway/limits/lanes.ts'],
    ['time that a call waits for a slot', span(queueMs), 'process/start.ts'],
    [
      'calls of a process, waiting ones too',
      `${count(usualCapacity)}; of a creator what is left for others`,
      'gateway/limits/limits.ts',
    ],
    ['lateness of timers, twice in a row, from which calls are refused', span(shedAboveMs), 'gateway/limits/limits.ts'],
    [
      'failures that open the circuit of an origin',
      `${leastFailures}, and more than half, in ${span(circuitWindowMs)}`,
      'gateway/limits/circuits.ts',
    ],
    ['time that a circuit stays open', span(circuitOpenMs), 'gateway/limits/circuits.ts'],
    ['`timeout_ms`', span(maxTimeoutMs), 'domain/config/tool.ts'],
    ['redirects that a tool follows', count(mostRedirects), 'gateway/call/follow-redirects.ts'],
    [
      'messages of a batch, and all of its answers',
      `${maxBatch}; ${size(maxBatchLength)}`,
      'gateway/protocol/legacy.ts',
    ],
    [
      'records of refused calls of a server, a minute and process',
      count(mostRefusedRecords),
      'gateway/call/call-log.ts',
    ],
    ['records that wait for the database, in a process', count(mostWaitingRecords), 'gateway/call/call-log.ts'],
  ],
  'Addresses and strangers': [
    ['refused requests of an address a minute', setting('REFUSALS_PER_MINUTE'), 'edge/strangers.ts'],
    ['the same of an IPv6 /56, and of a /48', '4 times, and 16 times', 'domain/limits.ts'],
    [
      'what counts as one refusal',
      `${size(sentBytes)} of lists of tools; ${count(chargedLength)} characters of an unproven token`,
      'edge/strangers.ts',
    ],
    [
      'queries a second for credentials of an address above that',
      `${lookupsOfAddress}; of all such addresses ${lookupsOfAll}`,
      'edge/strangers.ts',
    ],
    ['requests of an address a minute to logins and the sign-in', count(loginRequestsPerMinute), 'app/web.ts'],
    [
      'refused codes a minute at returns from providers',
      `${mostFailed.ofAddress} of an address, ${mostFailed.ofProvider} of a provider`,
      'edge/address-limit.ts',
    ],
    ['time that a token counts as known after a 2xx', span(knownMs), 'gateway/callers/caller.ts'],
  ],
  Operations: [
    ['reads at once', count(operationsAtOnce.read), 'operations/quotas/gate.ts'],
    ['changes at once', `${operationsAtOnce.write}; one of a creator writes`, 'operations/quotas/gate.ts'],
    ['try-outs and checks of a connection at once', count(operationsAtOnce.call), 'operations/quotas/gate.ts'],
    ['more of each that wait, and for how long', `${usualWaiting}; ${span(usualPatienceMs)}`, 'domain/work/gate.ts'],
    ['lists, statistics and exports of a creator', `1 at once, ${part(reportShare)}`, 'operations/quotas/gate.ts'],
    [
      'those that wait, and for how long',
      `${waitingReports.waiting}; ${span(waitingReports.patienceMs)}`,
      'operations/quotas/gate.ts',
    ],
    [
      'large servers that are read',
      `${ofBoth({ ...timeOfLarge, ofAll: timeOfLarge.atOnce })} at once, ${part(timeOfLarge.share())}, waiting ${span(timeOfLarge.patienceMs)}`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['threads for long work of a process', count(mostThreads), 'app/adapters/threads.ts'],
    [
      'jobs that wait for a thread, and for how long',
      `${ofBoth(jobQueue)}; ${span(jobTimes.waitMs)}, imports ${span(importTimes.waitMs)}`,
      'app/adapters/threads.ts',
    ],
    [
      'time of a job',
      `${span(jobTimes.limitMs)}, of an import ${span(importTimes.limitMs)}`,
      'app/adapters/threads.ts',
    ],
    ['imports at once', ofBoth(mostImportsAtOnce), 'app/adapters/importing.ts'],
    ['records of an export', count(maxExported), 'operations/calls/call-records.ts'],
  ],
  'The playground': [
    ['models that are asked at once', ofBoth(modelsAtOnce), 'operations/quotas/gate.ts'],
    ['answers of a model to one question', count(mostModelSteps), 'domain/model.ts'],
    ['a list of tools', size(mostOfferedBytes), 'gateway/hosted/served.ts'],
    ['messages of a conversation', count(mostMessages), 'operations/playground/ask-model.ts'],
    [
      'a response of a model',
      `${size(maxResponseBytes)}, ${span(modelTimeoutMs)}, ${maxCharacters} characters in ${maxParts} texts and calls`,
      'gateway/models/',
    ],
    ['an event of such a response', `${maxEventLength} characters`, 'gateway/models/event-stream.ts'],
  ],
  'Sizes of requests': [
    ['a body', body(bodyLimits), 'domain/json/body-limits.ts'],
    ['a body with a configuration', body(configurationLimits), 'domain/json/body-limits.ts'],
    ['a body of an operation without long fields', body(shortLimits), 'domain/json/body-limits.ts'],
    ['a body to a login', size(mostLoginBodyBytes), 'oauth/router.ts'],
    ['bodies above that of a configuration that arrive', ofBoth(mostLargeBodies), 'manage/rest.ts'],
    ['path and query of a request to an API', `${count(mostUrlLength)} characters`, 'domain/http/values.ts'],
    ['a header made of an argument', `${count(mostHeaderLength)} characters`, 'domain/http/values.ts'],
    ['pairs of a query or a form', count(mostPairs), 'domain/http/values.ts'],
    [
      'a description, fetched; YAML',
      `${size(fetchedBytes)}; ${size(documentLimits.yamlBytes)}`,
      'import/document/parse-document.ts',
    ],
    ['a description that is sent', size(mostDocumentCharacters), 'import/plan-outline.ts'],
    ['files of a description', `${mostFiles}, ${size(mostFileCharacters)}`, 'import/bundle.ts'],
    ['operations of a description', count(mostOperations), 'import/read-description.ts'],
    ['time to fetch a description', span(fetchMs), 'app/adapters/fetch-document.ts'],
  ],
  'Answers and files': [
    ['an answer, where `response_limit_bytes` is absent', size(defaultLimitBytes), 'gateway/hosted/hosted-server.ts'],
    ['a file that stays in the result', size(mostInlineBytes), 'domain/files/file-names.ts'],
    [
      'files of a workspace, kept',
      `${count(mostOfFiles.files)}, ${size(mostOfFiles.bytes)}, ${span(fileKeptMs)}`,
      'store/calls/files.ts',
    ],
    [
      'files that a call gives by address',
      `${mostGiven.files}, ${size(mostGiven.bytes)}`,
      'gateway/files/given-files.ts',
    ],
    ['downloads at once', ofBoth(mostDownloads), 'gateway/files/file-listener.ts'],
    [
      'rests of long answers of a workspace, kept',
      `${count(mostOfAnswers.rows)}, ${size(mostOfAnswers.characters)}, ${span(restKeptMs)}`,
      'store/calls/answer-pieces.ts',
    ],
    ['a captured call', size(longestCapture), 'gateway/captures/fit-capture.ts'],
    [
      'captured calls, kept',
      `${count(capturesPerServer)} of a server, ${count(capturesPerWorkspace)} of a workspace, ${span(captureKeptMs)}`,
      'store/calls/captures.ts',
    ],
  ],
  'Connections of clients': [
    ['connections of a process', `${count(mostForClients)}, with fewer file descriptors fewer`, 'process/start.ts'],
    ['requests of a connection that wait for earlier ones', count(mostWaiting), 'edge/client-connections.ts'],
    ['time to send the headers, and a request', `${span(headersMs)}, ${span(requestMs)}`, 'process/start.ts'],
    [
      'time to read an answer',
      `${span(slowReaderMs)}, and again for each ${size(bytesOfDeadline)} begun`,
      'edge/unread-answers.ts',
    ],
    ['the same for an answer that finds no memory', span(hastyMs), 'edge/unread-answers.ts'],
    [
      'time to read a piece of a file',
      `${span(slowReaderMs)} for ${size(fileChunkBytes)}`,
      'gateway/files/file-listener.ts',
    ],
    ['silence of a connection', span(silentMs), 'process/start.ts'],
    ['time that running calls have when the service stops', span(drainMs), 'process/start.ts'],
  ],
  'Connections to APIs': [
    ['connections of a process', count(mostUpstreamConnections), 'outbound/connections.ts'],
    ['connections of a workspace, origin and credential', count(mostPerPool), 'outbound/connections.ts'],
    ['idle connections of a creator', count(mostIdlePerTenant), 'outbound/connections.ts'],
    [
      'time that an idle one is kept',
      `${span(keepAliveMs)}, after its first request ${span(firstKeepAliveMs)}`,
      'outbound/connections.ts',
    ],
  ],
  Logins: [
    [
      'logins of a workspace that live, and those that ended',
      `${size(mostBytesOfWorkspace)} each`,
      'store/pruning/prune-logins.ts',
    ],
    [
      'new logins a minute',
      `${size(mostInMinute.ofTenant)} of a creator, ${size(mostInMinute.ofServer)} of a server`,
      'store/logins/grants.ts',
    ],
    ['tokens that were handed out, of a workspace', count(mostHandedOutTokens), 'store/pruning/prune-logins.ts'],
    ['logins of a browser under way', count(mostInProgress), 'oauth/consent.ts'],
    ['agents of a person at the management server', count(mostAgentsOfPerson), 'store/logins/grants.ts'],
    ['sessions of a person in the dashboard', count(mostSessionsOfPerson), 'store/people/sessions.ts'],
    ['time that a provider has to answer', span(spans.askProvider), 'oauth/parts.ts'],
    [
      'refused renewals without a reason, in a row, that end a login',
      `${refusalsToEnd} over ${span(refusedToEndMs)}`,
      'oauth/refresh-refusals.ts',
    ],
    ['time for the consent, and for the login', `${span(spans.consent)} each`, 'oauth/parts.ts'],
    [
      'life of a code; an access token; an unused refresh token',
      `${span(spans.code)}; ${span(spans.access)}; ${span(spans.refresh)}`,
      'oauth/parts.ts',
    ],
    [
      'entries of the audit of a server a day',
      `${count(mostLoginEventsInDay.login)} logins, ${count(mostLoginEventsInDay.loginRevoked)} that agents ended, ${mostLoginEventsInDay.loginFailed} failed`,
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
    ['tools of a server that any quota allows', count(mostTools), 'domain/config/server-config.ts'],
    ['arguments of a tool', count(maxArguments), 'domain/config/input-schema.ts'],
    ['`url` of a tool', `${count(maxUrlLength)} characters`, 'domain/config/tool.ts'],
    ['views of a server', count(mostViews), 'domain/config/view.ts'],
    ['models of a workspace', count(mostModels), 'operations/playground/models.ts'],
    ['secrets of a server', count(mostSecrets), 'operations/servers/secrets.ts'],
    ['kept versions of a server', size(mostVersionBytes), 'store/servers/server-versions.ts'],
    ['kept imports of a server', count(mostImports), 'store/servers/imports.ts'],
    ['watched descriptions', count(mostWatched), 'operations/imports/watch-operations.ts'],
    ['keys in a chain, each made with the one before', count(maxMakers), 'store/api-keys.ts'],
    ['revoked and expired keys', count(mostEndedKeys), 'store/pruning/prune-people.ts'],
    ['an invitation', span(invitationsKeptMs), 'store/people/members.ts'],
    ['workspaces of a person', count(maxWorkspaces), 'operations/people/workspaces.ts'],
    ['workspaces that a person creates, and creates in a day', count(maxCreated), 'operations/people/add-workspace.ts'],
    ['a deleted server that can be restored', span(restorableMs), 'store/servers/deleted-servers.ts'],
    ['webhooks', count(mostWebhooks), 'domain/notices.ts'],
    ['notices', `${count(mostNoticesInDay)} a day, kept for ${span(noticesKeptMs)}`, 'domain/notices.ts'],
    ['details of an entry of the audit', size(mostOfDetail), 'store/audit-events.ts'],
    [
      `details of a creator above ${count(shortDetail)} characters a day`,
      size(mostDetailsInDay),
      'store/audit-events.ts',
    ],
  ],
  'Memory of a process': [
    [
      'bodies, arguments, answers, configurations in use',
      `a quarter, ${size(leastWork)} at least; a creator half of what others leave`,
      'app/process-memory.ts',
    ],
    ['what is not counted', `up to ${size(uncountedBytes)}`, 'domain/work/memory-budget.ts'],
    [
      'compiled servers',
      `${count(mostServersRemembered)}, ${count(mostCompiledCharacters)} characters`,
      'gateway/hosted/hosted-servers.ts',
    ],
    ['API keys', count(mostKeysRemembered), 'store/api-keys.ts'],
    ['known tokens', count(mostKnown), 'gateway/callers/resolve-caller.ts'],
    ['logins in use', count(mostGrantsRemembered), 'oauth/provider-tokens.ts'],
    ['addresses, of each limit', count(mostAddresses), 'edge/address-limit.ts'],
    ['circuits', count(mostCircuits), 'gateway/limits/circuits.ts'],
  ],
};

/** Every bound of the service, from the constants that hold it. */
export function limitsPage(generated: string): string {
  const tables = Object.entries(sections).map(([title, bounds]) => {
    const rows = bounds.map(([what, bound, where]) => `| ${what} | ${bound} | [${where}](../../src/${where}) |`);
    return [`## ${title}\n`, '| what | bound | where |', '|---|---|---|', ...rows, ''].join('\n');
  });
  return [
    '# All limits',
    generated,
    'Every bound of the service. [Limits](../limits.md) says what happens above one, and who sets those that can be set. A name in capitals is a [variable](environment.md). "Of a creator" counts all workspaces that one person created; a workspace that no person created counts alone.\n',
    ...tables,
  ].join('\n');
}
