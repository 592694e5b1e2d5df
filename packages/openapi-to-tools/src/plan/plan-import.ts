import { ProblemList } from '@toolhost/errors/problems';
import { configurationLimits } from '@toolhost/json/body-limits';
import { getBodyProblem, scanJson } from '@toolhost/json/json-scan';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { normalizeText } from '@toolhost/tool-config/normalized-text';
import { defaultMaxResponseTokens } from '@toolhost/tool-config/read-more';
import { serverConfigSchema } from '@toolhost/tool-config/server-config';
import { checkServerWide, type UrlRule } from '@toolhost/tool-config/server-rules';
import { toSharedHeaders } from '@toolhost/tool-config/server-wide';
import { isSlug, reservedSlugs } from '@toolhost/tool-config/slug';
import type { ToolContext } from '@toolhost/tool-config/tool-rules';
import { compareTool } from '../comparison/compare-tool.ts';
import { SchemaFinder } from '../document/references.ts';
import type { ApiDescription, ApiOperation, Finding } from '../model.ts';
import type { Group, ImportOutcome, Proposal, Question, RequiredSecret } from '../plan-outline.ts';
import { buildTool, type ToolSource } from '../tools/build-tool.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import { assignToolNames } from '../tools/names.ts';
import { shorten, toPlainText, toVisibleName } from '../tools/texts.ts';
import type { ImportedTool, ToolCandidate } from '../tools/tool-candidate.ts';
import { resolveAccess } from './access.ts';
import { type CredentialFields, markUnusableSchemes } from './authentication-fields.ts';
import { checkAnswers, type ImportChoices } from './choices.ts';
import { chooseCredentials, type ServerCredentials } from './credentials.ts';
import { prefixPlan } from './prefix-plan.ts';
import { scoreOperations } from './ranking.ts';
import { removeRejectedInputs } from './rejected-inputs.ts';
import { countGroups, propose, select, sumTokens } from './selection.ts';
import { type Address, getOwnAddress, resolveServerAddress } from './server-address.ts';

/** Result of planning an import: the configuration to create, and the outcome of each operation. */
export type ImportPlan = {
  title: string;
  format: string;
  counts: Record<ImportOutcome, number> & { operations: number };
  groups: Group[];
  proposal: Proposal;
  questions: Question[];
  secrets: RequiredSecret[];
  /** Credentials that the chosen tools reference. */
  credentials: ImportedConfig['credentials'];
  notes: string[];
  /** Selectors in `include` that match no operation. */
  unmatched: string[];
  findings: readonly Finding[];
  /** Candidates of all operations, in document order. */
  all: readonly ToolCandidate[];
  /** Key of each operation in `all`, used to identify it in a re-import. */
  keys: readonly string[];
  chosen: readonly ToolCandidate[];
  tokens: number;
  /** Configuration of the chosen operations; undefined while a required question is unanswered. */
  config: ImportedConfig | undefined;
};

export type ImportedConfig = {
  name: string;
  slug: string;
  description?: string;
  base_url?: string;
  variables?: object;
  authentication?: object | object[];
  credentials?: Record<string, object | object[]>;
  oauth?: object;
  login?: object;
  max_response_tokens: number;
  tools: ImportedTool[];
};

/**
 * Plans the import of a description. Without `include`, chooses the proposed operations. `urlProblem` rejects addresses
 * that the deployment may not call.
 * @throws AppError invalid if an answer does not belong to any question
 */
export function planImport(
  described: ApiDescription,
  choices: ImportChoices,
  urlProblem: UrlRule = () => undefined,
): ImportPlan {
  const plan = planOwnServer(described, choices, urlProblem);
  return choices.prefix === undefined ? plan : prefixPlan(plan, choices.prefix);
}

function planOwnServer(described: ApiDescription, choices: ImportChoices, urlProblem: UrlRule): ImportPlan {
  const description = { ...described, schemes: markUnusableSchemes(described, urlProblem) };
  checkAnswers(description, choices);
  const address = resolveServerAddress(description, choices, urlProblem);
  const names = assignToolNames(description.operations);
  const keys = listOperationKeys(description.operations);
  const existing = description.operations.filter((_, index) => choices.existingKeys?.has(keys[index] as string));
  const takenNames = new Set(Object.keys(address.variables));
  const credentialChoice = { choices, urlProblem, takenNames };
  const finder = new SchemaFinder(description.root);
  const buildTools = (serverCredentials: ServerCredentials): ToolCandidate[] => {
    const ruleContext = toRuleContext(address, serverCredentials.toFields(description.operations), urlProblem);
    return description.operations.map((operation, index) => {
      const server = getOwnAddress(operation.servers, choices, address);
      const { name, names: credential, problem: credentialProblem } = serverCredentials.getCredential(operation);
      const source = { root: description.root, finder, credential };
      const draft = buildTool(operation, names[index] as string, server && 'url' in server ? server.url : '', source);
      const reason = credentialProblem ?? (server && 'problem' in server ? server.problem : undefined);
      if (reason !== undefined) return { ...draft, tool: undefined, outcome: 'skipped', notes: [reason], tokens: 0 };
      if (!draft.tool) return draft;
      const reference = { ...(name !== undefined && { credential: name }), imported_from: keys[index] as string };
      const tool = { ...draft.tool, ...reference };
      return judgeCandidate(removeRejectedInputs({ ...draft, tool }, ruleContext), source);
    });
  };
  let credentials = chooseCredentials(description, { ...credentialChoice, existing });
  let all = buildTools(credentials);
  const tokens = all.map((candidate) => candidate.tokens);
  const proposal = propose(all, scoreOperations(description, tokens), choices);
  const effectiveChoices = choices.include === undefined ? { ...choices, include: proposal.include } : choices;
  let { chosen, unmatched } = select(all, effectiveChoices);
  if (choices.existingKeys === undefined) {
    // The server's credential is the one that most of its chosen tools use.
    const improved = chooseCredentials(description, { ...credentialChoice, existing: getOperations(chosen) });
    if (improved.defaultId !== credentials.defaultId) {
      credentials = improved;
      all = buildTools(improved);
      ({ chosen, unmatched } = select(all, effectiveChoices));
    }
  }
  const { fields, accessQuestions } = resolveAccess(credentials.toFields(getOperations(chosen)), choices);
  const questions = [...address.questions, ...credentials.questions, ...accessQuestions];
  const config = questions.some(({ required }) => required)
    ? undefined
    : buildConfig(description, choices, { address, fields, chosen, maxToolNameLength: getMaxToolNameLength(all) });
  return {
    title: toPlainText(description.title, 100),
    format: `${description.format} ${description.version.slice(0, 20)}`.trim(),
    counts: countOutcomes(all),
    groups: countGroups(
      all,
      description.tags.map(({ name }) => name),
    ),
    proposal,
    questions,
    secrets: removeDuplicates([...address.secrets, ...fields.secrets]),
    credentials: fields.credentials,
    notes: fields.notes,
    unmatched,
    findings: [...description.findings, ...address.findings],
    all,
    keys,
    chosen,
    tokens: sumTokens(chosen),
    config,
  };
}

/**
 * Compares a finished tool with its operation to set the outcome and the notes, including the reasons why inputs were
 * left out.
 */
function judgeCandidate(candidate: ToolCandidate, source: ToolSource): ToolCandidate {
  if (!candidate.tool) return candidate;
  const { outcome, notes } = compareTool(candidate.operation, candidate.tool, source);
  const rejectedInputs = [...(candidate.rejectedInputs ?? [])];
  const findReason = (note: string) => rejectedInputs.find(([name]) => note.endsWith(` ${quoteShort(name)}`))?.[1];
  const explainedNotes = notes.map((note) => [note, findReason(note)].filter((text) => text !== undefined).join(': '));
  return { ...candidate, outcome, notes: explainedNotes };
}

function getOperations(tools: readonly ToolCandidate[]): ApiOperation[] {
  return tools.map(({ operation }) => operation);
}

/** Removes duplicates, because a key in the URL and a key in a header may be the same secret. */
function removeDuplicates(secrets: readonly RequiredSecret[]): RequiredSecret[] {
  return secrets.filter(({ name }, index) => secrets.findIndex((earlier) => earlier.name === name) === index);
}

/** Returns the context that tool checks need. A placeholder stands for an address that must be answered first. */
function toRuleContext(
  { baseUrl, variables }: Address,
  credentialFields: CredentialFields,
  urlProblem: UrlRule,
): ToolContext {
  const { shape } = serverConfigSchema;
  const authentication = shape.authentication.safeParse(credentialFields.authentication).data;
  const credentials = shape.credentials.safeParse(credentialFields.credentials).data;
  const raw = { base_url: baseUrl ?? 'https://base.invalid', variables };
  const serverWide = checkServerWide(raw, { authentication, urlProblem }, new ProblemList());
  return { authentication, credentials, urlProblem, serverWide, sharedHeaders: toSharedHeaders(serverWide) };
}

function countOutcomes(candidates: readonly ToolCandidate[]): ImportPlan['counts'] {
  const counts = { operations: candidates.length, whole: 0, loosened: 0, partial: 0, skipped: 0 };
  for (const { outcome } of candidates) counts[outcome]++;
  return counts;
}

type ConfigSource = {
  address: ReturnType<typeof resolveServerAddress>;
  fields: ReturnType<typeof resolveAccess>['fields'];
  chosen: readonly ToolCandidate[];
  maxToolNameLength: number;
};

function getMaxToolNameLength(candidates: readonly ToolCandidate[]): number {
  return Math.max(0, ...candidates.map(({ tool, name }) => (tool ? name.length : 0)));
}

function buildConfig(
  description: ApiDescription,
  choices: ImportChoices,
  { address, fields, chosen, maxToolNameLength }: ConfigSource,
): ImportedConfig {
  const name = toServerName(choices.name ?? description.title);
  const text = toPlainText(description.description, 500);
  const { variables, baseUrl } = address;
  return {
    name,
    slug: choices.slug ?? toSlug(name, baseUrl, maxToolNameLength),
    ...(text !== '' && { description: text }),
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(fields.authentication !== undefined && { authentication: fields.authentication }),
    ...(fields.credentials !== undefined && { credentials: fields.credentials }),
    ...(fields.oauth !== undefined && { oauth: fields.oauth }),
    ...(fields.login !== undefined && { login: fields.login }),
    max_response_tokens: defaultMaxResponseTokens,
    tools: chosen.flatMap(({ tool }) => (tool ? [tool] : [])),
  };
}

function toServerName(title: string): string {
  return shorten(toPlainText(title, 200), 100) || 'Imported API';
}

/**
 * Returns the maximum slug length in characters. Claude Code shows a tool as `mcp__slug__tool` and allows 64
 * characters. `maxToolNameLength` includes tools that were not chosen, because people may add them later.
 */
function getMaxSlugLength(maxToolNameLength: number): number {
  return Math.min(24, 64 - 'mcp____'.length - maxToolNameLength);
}

/** Words that carry no information about an API if other words are left. */
const genericWords = new Set(
  'a an and api apis docs documentation for http https json of official openapi preview public reference rest restful service spec specification specs swagger the v1 v2 v3 web'.split(
    ' ',
  ),
);

/** Returns a short slug for a server: the distinctive words of its name, or its host. */
function toSlug(name: string, address: string | undefined, maxToolNameLength: number): string {
  const maxLength = getMaxSlugLength(maxToolNameLength);
  const isHost = /^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$/i.test(name);
  const words = isHost ? [] : splitWords(name).filter((word) => !genericWords.has(word));
  const host = getHostWord(isHost ? `https://${name}` : address);
  const slug = joinSlug(words.length > 0 ? words : host === undefined ? splitWords(name) : [host], maxLength);
  const isShort = slug.length < 3 || reservedSlugs.has(slug);
  const fullSlug = isShort ? `${slug === '' ? 'imported' : slug.slice(0, maxLength - 4)}-api` : slug;
  return isSlug(fullSlug) && fullSlug.length <= maxLength ? fullSlug : 'imported'.slice(0, maxLength);
}

function splitWords(name: string): string[] {
  return normalizeText(name, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/['’]s\b/g, '')
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .split(' ')
    .filter((word) => word !== '');
}

/** Joins as many whole words as fit. */
function joinSlug(words: readonly string[], maxLength: number): string {
  let slug = (words[0] ?? '').slice(0, maxLength).replace(/-+$/, '');
  for (const word of words.slice(1)) {
    if (`${slug}-${word}`.length > maxLength) break;
    slug = `${slug}-${word}`;
  }
  return slug;
}

/** Returns the word of a host that names its owner, such as `sentry` in `https://us.sentry.io`. */
function getHostWord(address: string | undefined): string | undefined {
  const labels = (address === undefined ? undefined : parseUrl(address))?.hostname.split('.') ?? [];
  const word = labels.at(-2);
  return word !== undefined && /[a-z]/.test(word) && labels.length <= 4
    ? word.replaceAll(/[^a-z0-9]+/g, '-')
    : undefined;
}

const maxKeyLength = 2000;

/** Returns unique keys that identify operations in a re-import, such as `GET /pets/{id}`. */
export function listOperationKeys(operations: readonly ApiOperation[]): string[] {
  const counts = new Map<string, number>();
  return operations.map(({ method, path }) => {
    const key = toVisibleName(`${method} ${path}`).slice(0, maxKeyLength);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count === 1 ? key : `${key} (${count})`;
  });
}

/**
 * Returns the reason why a configuration, as JSON, exceeds the request size limit, or undefined if it fits. A schema
 * that many operations share is repeated in each of their tools, so a short document can expand to any size.
 */
export function getSizeProblem(config: string): string | undefined {
  const { bytes: maxBytes, depth } = configurationLimits;
  const text = Buffer.from(config);
  const scan = text.length > maxBytes ? undefined : scanJson(text, depth);
  if (scan && getBodyProblem(scan, configurationLimits) === undefined) return undefined;
  return `the configuration of the chosen operations is too large (${(text.length / 1024 / 1024).toFixed(1)} MB); allowed: at most ${maxBytes / 1024 / 1024} MB, ${configurationLimits.elements} elements, and ${configurationLimits.names} names; choose fewer operations, or split them into several servers`;
}
