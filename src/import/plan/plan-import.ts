import { serverConfigSchema } from '../../domain/config/server-config.ts';
import { checkServerWide, type UrlRule } from '../../domain/config/server-rules.ts';
import { sharedHeaders } from '../../domain/config/server-wide.ts';
import type { ToolSurroundings } from '../../domain/config/tool-rules.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { configurationLimits } from '../../domain/json/body-limits.ts';
import { bodyProblem, scanJson } from '../../domain/json/json-scan.ts';
import { normalised } from '../../domain/normalised.ts';
import { startAnswerTokens } from '../../domain/pieces/read-more.ts';
import { ProblemList } from '../../domain/problems.ts';
import { isSlug, reservedSlugs } from '../../domain/slug.ts';
import { compareTool } from '../comparison/compare-tool.ts';
import { SchemaFinder } from '../document/references.ts';
import type { ApiDescription, ApiOperation, Finding } from '../model.ts';
import type { Group, ImportOutcome, NeededSecret, Proposal, Question } from '../plan-outline.ts';
import { short } from '../tools/input-arguments.ts';
import type { ImportedTool, MadeTool } from '../tools/made-tool.ts';
import { makeTool, type ToolSource } from '../tools/make-tool.ts';
import { toolNames } from '../tools/names.ts';
import { plainText, shortened, visibleName } from '../tools/texts.ts';
import { type CredentialFields, usableSchemes } from './authentication-fields.ts';
import { checkAnswers, type ImportChoices } from './choices.ts';
import { chooseCredentials, type ServerCredentials } from './credentials.ts';
import { worthOfOperations } from './ranking.ts';
import { withoutRefused } from './refused-parts.ts';
import { groupsOf, propose, select, tokensOfAll } from './selection.ts';
import { type Address, ownAddress, serverAddress } from './server-address.ts';

/** Result of planning an import: the configuration to create, and the outcome of each operation. */
export type ImportPlan = {
  title: string;
  format: string;
  counts: Record<ImportOutcome, number> & { operations: number };
  groups: Group[];
  proposal: Proposal;
  questions: Question[];
  secrets: NeededSecret[];
  /** Credentials that the chosen tools reference. */
  credentials: ImportedConfig['credentials'];
  notes: string[];
  /** Selectors in `include` that match no operation. */
  unmatched: string[];
  findings: readonly Finding[];
  all: readonly MadeTool[];
  /** Key of each operation in `all`, used to identify it in a re-import. */
  keys: readonly string[];
  chosen: readonly MadeTool[];
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
  max_answer_tokens: number;
  tools: ImportedTool[];
};

/**
 * Plans the import of a description. Without `include`, the proposal is chosen. `urlProblem` rejects addresses that the
 * deployment may not call.
 * @throws AppError invalid if an answer does not belong to any question
 */
export function planImport(
  described: ApiDescription,
  choices: ImportChoices,
  urlProblem: UrlRule = () => undefined,
): ImportPlan {
  const description = { ...described, schemes: usableSchemes(described, urlProblem) };
  checkAnswers(description, choices);
  const address = serverAddress(description, choices, urlProblem);
  const names = toolNames(description.operations);
  const keys = operationKeys(description.operations);
  const present = description.operations.filter((_, index) => choices.present?.has(keys[index] as string));
  const taken = new Set(Object.keys(address.variables));
  const choosing = { choices, urlProblem, taken };
  const { root } = description;
  const finder = new SchemaFinder(root);
  const toolsWith = (given: ServerCredentials): MadeTool[] => {
    const surroundings = surroundingsOf(address, given.fieldsFor(description.operations), urlProblem);
    return description.operations.map((operation, index) => {
      const own = ownAddress(operation.servers, choices, address);
      const { name, names: credential, problem } = given.of(operation);
      const source = { root, finder, credential };
      const made = makeTool(operation, names[index] as string, own && 'url' in own ? own.url : '', source);
      const missing = problem ?? (own && 'problem' in own ? own.problem : undefined);
      if (missing !== undefined) return { ...made, tool: undefined, outcome: 'skipped', notes: [missing], tokens: 0 };
      if (!made.tool) return made;
      const fields = { ...(name !== undefined && { credential: name }), imported_from: keys[index] as string };
      return judged(withoutRefused({ ...made, tool: { ...made.tool, ...fields } }, surroundings), source);
    });
  };
  let credentials = chooseCredentials(description, { ...choosing, present });
  let all = toolsWith(credentials);
  const tokens = all.map((made) => made.tokens);
  const proposal = propose(all, worthOfOperations(description, tokens), choices);
  const wanted = choices.include === undefined ? { ...choices, include: proposal.include } : choices;
  let { chosen, unmatched } = select(all, wanted);
  if (choices.present === undefined) {
    // The server's credential is the one that most of its chosen tools use.
    const better = chooseCredentials(description, { ...choosing, present: operationsOf(chosen) });
    if (better.usual !== credentials.usual) {
      credentials = better;
      all = toolsWith(better);
      ({ chosen, unmatched } = select(all, wanted));
    }
  }
  const fields = credentials.fieldsFor(operationsOf(chosen));
  const questions = [...address.questions, ...credentials.questions];
  const config = questions.some(({ required }) => required)
    ? undefined
    : configOf(description, choices, { address, fields, chosen, longestName: longestOf(all) });
  return {
    title: plainText(description.title, 100),
    format: `${description.format} ${description.version.slice(0, 20)}`.trim(),
    counts: countsOf(all),
    groups: groupsOf(
      all,
      description.tags.map(({ name }) => name),
    ),
    proposal,
    questions,
    secrets: withoutRepeats([...address.secrets, ...fields.secrets]),
    credentials: fields.credentials,
    notes: fields.notes,
    unmatched,
    findings: [...description.findings, ...address.findings],
    all,
    keys,
    chosen,
    tokens: tokensOfAll(chosen),
    config,
  };
}

/**
 * Sets a finished tool's outcome and notes by comparing it with its operation. Adds the reasons why inputs were left
 * out.
 */
function judged(made: MadeTool, source: ToolSource): MadeTool {
  if (!made.tool) return made;
  const { outcome, notes } = compareTool(made.operation, made.tool, source);
  const refused = [...(made.refused ?? [])];
  const reasonOf = (note: string) => refused.find(([name]) => note.endsWith(` ${short(name)}`))?.[1];
  const explained = notes.map((note) => [note, reasonOf(note)].filter((text) => text !== undefined).join(': '));
  return { ...made, outcome, notes: explained };
}

function operationsOf(tools: readonly MadeTool[]): ApiOperation[] {
  return tools.map(({ operation }) => operation);
}

/** Removes duplicates. A key in the URL and a key in a header may be the same secret. */
function withoutRepeats(secrets: readonly NeededSecret[]): NeededSecret[] {
  return secrets.filter(({ name }, index) => secrets.findIndex((other) => other.name === name) === index);
}

/** Returns the context that tool checks need. A placeholder stands for an address that must be answered first. */
function surroundingsOf(
  { baseUrl, variables }: Address,
  given: CredentialFields,
  urlProblem: UrlRule,
): ToolSurroundings {
  const { shape } = serverConfigSchema;
  const authentication = shape.authentication.safeParse(given.authentication).data;
  const credentials = shape.credentials.safeParse(given.credentials).data;
  const raw = { base_url: baseUrl ?? 'https://base.invalid', variables };
  const wide = checkServerWide(raw, { authentication, urlProblem }, new ProblemList());
  return { authentication, credentials, urlProblem, wide, shared: sharedHeaders(wide) };
}

function countsOf(all: readonly MadeTool[]): ImportPlan['counts'] {
  const counts = { operations: all.length, whole: 0, loosened: 0, partial: 0, skipped: 0 };
  for (const { outcome } of all) counts[outcome]++;
  return counts;
}

type Made = {
  address: ReturnType<typeof serverAddress>;
  fields: CredentialFields;
  chosen: readonly MadeTool[];
  longestName: number;
};

function longestOf(all: readonly MadeTool[]): number {
  return Math.max(0, ...all.map(({ tool, name }) => (tool ? name.length : 0)));
}

function configOf(
  description: ApiDescription,
  choices: ImportChoices,
  { address, fields, chosen, longestName }: Made,
): ImportedConfig {
  const name = nameOf(choices.name ?? description.title);
  const text = plainText(description.description, 500);
  const { variables, baseUrl } = address;
  return {
    name,
    slug: choices.slug ?? slugOf(name, baseUrl, longestName),
    ...(text !== '' && { description: text }),
    ...(baseUrl !== undefined && { base_url: baseUrl }),
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(fields.authentication !== undefined && { authentication: fields.authentication }),
    ...(fields.credentials !== undefined && { credentials: fields.credentials }),
    ...(fields.oauth !== undefined && { oauth: fields.oauth }),
    max_answer_tokens: startAnswerTokens,
    tools: chosen.flatMap(({ tool }) => (tool ? [tool] : [])),
  };
}

function nameOf(title: string): string {
  return shortened(plainText(title, 200), 100) || 'Imported API';
}

/**
 * Returns the maximum slug length. Claude Code shows a tool as `mcp__slug__tool` and allows 64 characters. Tools that
 * are not chosen yet count as well.
 */
function longestSlug(longestName: number): number {
  return Math.min(24, 64 - 'mcp____'.length - longestName);
}

/** Words that carry no information about an API if other words are left. */
const generic = new Set(
  'a an and api apis docs documentation for http https json of official openapi preview public reference rest restful service spec specification specs swagger the v1 v2 v3 web'.split(
    ' ',
  ),
);

/** Returns a short slug for a server: the distinctive words of its name, or its host. */
function slugOf(name: string, address: string | undefined, longestName: number): string {
  const longest = longestSlug(longestName);
  const isHost = /^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}$/i.test(name);
  const words = isHost ? [] : wordsOf(name).filter((word) => !generic.has(word));
  const host = hostWord(isHost ? `https://${name}` : address);
  const slug = joined(words.length > 0 ? words : host === undefined ? wordsOf(name) : [host], longest);
  const isShort = slug.length < 3 || reservedSlugs.has(slug);
  const whole = isShort ? `${slug === '' ? 'imported' : slug.slice(0, longest - 4)}-api` : slug;
  return isSlug(whole) && whole.length <= longest ? whole : 'imported'.slice(0, longest);
}

function wordsOf(name: string): string[] {
  return normalised(name, 'NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/['’]s\b/g, '')
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .split(' ')
    .filter((word) => word !== '');
}

/** Joins as many whole words as fit. */
function joined(words: readonly string[], longest: number): string {
  let slug = (words[0] ?? '').slice(0, longest).replace(/-+$/, '');
  for (const word of words.slice(1)) {
    if (`${slug}-${word}`.length > longest) break;
    slug = `${slug}-${word}`;
  }
  return slug;
}

/** Returns the word of a host that names its owner, such as `sentry` in `https://us.sentry.io`. */
function hostWord(address: string | undefined): string | undefined {
  const labels = (address === undefined ? undefined : readUrl(address))?.hostname.split('.') ?? [];
  const word = labels.at(-2);
  return word !== undefined && /[a-z]/.test(word) && labels.length <= 4
    ? word.replaceAll(/[^a-z0-9]+/g, '-')
    : undefined;
}

const longestKey = 2000;

/** Returns unique keys that identify operations in a re-import, such as `GET /pets/{id}`. */
export function operationKeys(operations: readonly ApiOperation[]): string[] {
  const counts = new Map<string, number>();
  return operations.map(({ method, path }) => {
    const key = visibleName(`${method} ${path}`).slice(0, longestKey);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count === 1 ? key : `${key} (${count})`;
  });
}

/**
 * Returns the reason why a configuration, as JSON, exceeds the request size limit, or undefined if it fits. A schema
 * that many operations share is repeated in each of their tools, so a short document can expand to any size.
 */
export function sizeProblem(config: string): string | undefined {
  const { bytes: most, depth } = configurationLimits;
  const text = Buffer.from(config);
  const scan = text.length > most ? undefined : scanJson(text, depth);
  if (scan && bodyProblem(scan, configurationLimits) === undefined) return undefined;
  return `the configuration of the chosen operations is too large (${(text.length / 1024 / 1024).toFixed(1)} MB); allowed: at most ${most / 1024 / 1024} MB, ${configurationLimits.elements} elements, and ${configurationLimits.names} names; choose fewer operations, or split them into several servers`;
}
