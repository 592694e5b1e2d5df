import { isSafeMethod } from '@toolhost/tool-config/http/headers';
import { searchTools } from '@toolhost/tool-search/search-tools';
import { buildIndex, type SearchedTool, type ToolIndex } from '@toolhost/tool-search/tool-index';
import type { Group, Proposal } from '../plan-outline.ts';
import { inferAnnotations } from '../tools/effects.ts';
import type { ToolCandidate } from '../tools/tool-candidate.ts';
import type { ImportChoices } from './choices.ts';

/** Limits of the proposal. Some clients drop tools above 40, and every conversation pays for the tool list. */
export const proposalLimits = { tools: 40, tokens: 10_000 } as const;

/** Maximum length of a selector in `include`; a longer one cannot be proposed. */
const maxSelectorLength = 500;

/** Returns an operation's group: its first tag, or the first word of its path. */
export function getGroup({ operation }: ToolCandidate): string {
  const [tag] = operation.tags;
  if (tag !== undefined) return tag;
  return (
    operation.path
      .split(/[/?#]/)
      .find((segment) => segment !== '' && !/^(?:\{.*|v\d+(?:\.\d+)?|api|rest)$/i.test(segment)) ?? 'other'
  );
}

export function isRead({ operation }: ToolCandidate): boolean {
  const { readOnlyHint } = inferAnnotations(operation) ?? {};
  return readOnlyHint ?? isSafeMethod(operation.method);
}

function getOperationName({ operation }: ToolCandidate): string {
  return `${operation.method} ${operation.path}`;
}

/** Returns the texts that name an operation itself. `getGroupTexts` returns the names of its groups. */
function getOwnTexts(candidate: ToolCandidate): string[] {
  return [candidate.operation.operationId ?? '', candidate.name, candidate.operation.path, getOperationName(candidate)];
}

function getGroupTexts(candidate: ToolCandidate): string[] {
  return [...candidate.operation.tags, getGroup(candidate)];
}

/** Selectors without `*`, and selectors with `*` split into the texts around the stars. All are lowercase. */
type Selectors = { exact: ReadonlySet<string>; patterns: readonly (readonly string[])[] };

/** Parses selectors. `*` matches any text; letter case is ignored. */
function parseSelectors(selectors: readonly string[]): Selectors {
  const splitSelectors = selectors.map((text) => splitSelector(normalizeSelector(text)));
  return {
    exact: new Set(splitSelectors.flatMap((parts) => (parts.length === 1 ? parts : []))),
    patterns: splitSelectors.filter((parts) => parts.length > 1),
  };
}

function splitSelector(selector: string): string[] {
  return selector.split(/\*+/);
}

function normalizeSelector(text: string): string {
  return text.trim().toLowerCase();
}

/** Returns true if one of the texts matches one of the selectors. */
function matchesSelectors(texts: readonly string[], { exact, patterns }: Selectors): boolean {
  return texts.some((text) => exact.has(text) || patterns.some((parts) => isMatch(text, parts)));
}

/** Returns true if a text contains all parts in order, the first at its beginning and the last at its end. */
function isMatch(text: string, parts: readonly string[]): boolean {
  const [prefix = '', suffix = ''] = [parts[0], parts.at(-1)];
  const suffixStart = text.length - suffix.length;
  if (!text.startsWith(prefix) || !text.endsWith(suffix)) return false;
  // The first match of each part leaves the most text for the others, so no other position has to be tried.
  let from = prefix.length;
  for (const part of parts.slice(1, -1)) {
    const index = text.indexOf(part, from);
    if (index < 0) return false;
    from = index + part.length;
  }
  return from <= suffixStart;
}

const toLowerCaseAll = (texts: readonly string[]) => texts.map((text) => text.toLowerCase());

export type Selection = { chosen: ToolCandidate[]; unmatched: string[] };

/** Returns the operations that the choices select; without `include`, all of them. Skipped operations are left out. */
export function select(all: readonly ToolCandidate[], choices: ImportChoices): Selection {
  const include = choices.include && parseSelectors(choices.include);
  const exclude = choices.exclude && parseSelectors(choices.exclude);
  const ownTexts = new Map(all.map((candidate) => [candidate, toLowerCaseAll(getOwnTexts(candidate))]));
  const allTexts = new Map(
    all.map((candidate) => [
      candidate,
      [...toLowerCaseAll(getGroupTexts(candidate)), ...(ownTexts.get(candidate) ?? [])],
    ]),
  );
  /** Returns true if an operation is named without `*`, so it is selected even if it is deprecated. */
  const isNamedItself = (candidate: ToolCandidate) =>
    ownTexts.get(candidate)?.some((text) => include?.exact.has(text)) === true;
  const chosen = all.filter((candidate) => {
    const named = allTexts.get(candidate) ?? [];
    if (!candidate.tool || (choices.readOnly && !isRead(candidate)) || (exclude && matchesSelectors(named, exclude)))
      return false;
    if (include && !matchesSelectors(named, include)) return false;
    return !candidate.operation.isDeprecated || choices.deprecated === true || isNamedItself(candidate);
  });
  const knownTexts = new Set([...allTexts.values()].flat());
  const unmatched = (choices.include ?? []).filter(
    (selector) => !matchesAnyText(normalizeSelector(selector), knownTexts),
  );
  return { chosen, unmatched: unmatched.map((selector) => selector.trim()) };
}

/** Returns true if a selector matches at least one text. */
function matchesAnyText(selector: string, texts: ReadonlySet<string>): boolean {
  const parts = splitSelector(selector);
  return parts.length === 1 ? texts.has(selector) : texts.values().some((text) => isMatch(text, parts));
}

/** Counts operations and tokens by group. Groups in `order` come first. */
export function countGroups(all: readonly ToolCandidate[], order: readonly string[]): Group[] {
  const groups = new Map<string, Group>(
    order.map((name) => [name, { name, operations: 0, reads: 0, tokens: 0, skipped: 0 }]),
  );
  for (const candidate of all) {
    const name = getGroup(candidate);
    const group = groups.get(name) ?? { name, operations: 0, reads: 0, tokens: 0, skipped: 0 };
    groups.set(name, group);
    group.operations++;
    if (isRead(candidate)) group.reads++;
    if (!candidate.tool) group.skipped++;
    group.tokens += candidate.tokens;
  }
  return [...groups.values()].filter(({ operations }) => operations > 0);
}

/**
 * Proposes everything if it fits within the limits, and otherwise the operations with the highest score. With
 * `choices.for`, proposes the operations that match the sentence. `scores` has one entry per candidate.
 */
export function propose(all: readonly ToolCandidate[], scores: readonly number[], choices: ImportChoices): Proposal {
  const scoreByCandidate = new Map(all.map((candidate, index) => [candidate, scores[index] ?? 0]));
  const usable = select(all, { ...choices, include: undefined }).chosen;
  const byScore = usable.toSorted((a, b) => (scoreByCandidate.get(b) ?? 0) - (scoreByCandidate.get(a) ?? 0));
  const matching = choices.for === undefined ? [] : findMatchingTools(byScore, choices.for);
  if (matching.length > 0) return toProposal(all, matching, 'the operations that match the sentence best');
  const missNote = choices.for === undefined ? '' : 'no operation matches the sentence, so ';
  if (fitsProposal(usable))
    return createProposal(['*'], usable, `${missNote}all operations, because they fit within the limits`);
  return toProposal(all, byScore, `${missNote}the operations that agents use most, as far as the description shows`);
}

/**
 * Proposes the first operations that fit. Ignores operations far down, which would only be proposed for being small.
 */
function toProposal(all: readonly ToolCandidate[], ranked: readonly ToolCandidate[], reason: string): Proposal {
  const proposedTools = takeFitting(ranked.slice(0, 2 * proposalLimits.tools));
  const counts = Map.groupBy(all, getOperationName);
  const include = proposedTools.map((candidate) => {
    const name = getOperationName(candidate);
    return counts.get(name)?.length === 1 && name.length <= maxSelectorLength && !name.includes('*')
      ? name
      : candidate.name;
  });
  return createProposal(include, proposedTools, reason);
}

/** Returns the tools that match a sentence, ranked by tool search and score. */
function findMatchingTools(byScore: readonly ToolCandidate[], purpose: string): ToolCandidate[] {
  const index = buildToolIndex(byScore);
  const { best } = searchTools(index, purpose, byScore.length);
  // Reciprocal rank fusion (G. Cormack et al., 2009): search ranks count double; `position` is the rank by score.
  const scores = best.map((position, rank) => [position, 2 / (20 + rank) + 1 / (20 + position)] as const);
  return scores.toSorted(([, a], [, b]) => b - a).map(([position]) => byScore[position] as ToolCandidate);
}

function buildToolIndex(all: readonly ToolCandidate[]): ToolIndex {
  const steps = buildIndex(all.length, (position) => toSearchedTool(all[position] as ToolCandidate));
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}

function toSearchedTool({ operation, name, tool }: ToolCandidate): SearchedTool {
  const args = operation.inputs.map((input) => input.name);
  const { method, path, tags } = operation;
  return { name, title: undefined, description: tool?.description ?? '', method, url: path, arguments: args, tags };
}

function takeFitting(ranked: readonly ToolCandidate[]): ToolCandidate[] {
  const selected: ToolCandidate[] = [];
  let tokens = 0;
  for (const candidate of ranked) {
    if (selected.length >= proposalLimits.tools || tokens + candidate.tokens > proposalLimits.tokens) continue;
    selected.push(candidate);
    tokens += candidate.tokens;
  }
  return selected;
}

function createProposal(include: string[], chosen: readonly ToolCandidate[], reason: string): Proposal {
  return { include, tools: chosen.length, tokens: sumTokens(chosen), reason };
}

function fitsProposal(chosen: readonly ToolCandidate[]): boolean {
  return chosen.length <= proposalLimits.tools && sumTokens(chosen) <= proposalLimits.tokens;
}

export function sumTokens(chosen: readonly ToolCandidate[]): number {
  return chosen.reduce((sum, { tokens }) => sum + tokens, 0);
}
