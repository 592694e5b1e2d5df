import { isSafeMethod } from '../../domain/http/headers.ts';
import { searchTools } from '../../domain/search/search-tools.ts';
import { indexing, type SearchedTool, type ToolIndex } from '../../domain/search/tool-index.ts';
import type { Group, Proposal } from '../plan-outline.ts';
import { hintsOf } from '../tools/effects.ts';
import type { MadeTool } from '../tools/made-tool.ts';
import type { ImportChoices } from './choices.ts';

/** Limits of the proposal. Some clients drop tools above 40, and every conversation pays for the tool list. */
export const proposed = { tools: 40, tokens: 10_000 } as const;

/** Maximum length of a selector in `include`; a longer one cannot be proposed. */
const longestSelector = 500;

/** Returns an operation's group: its first tag, or the first word of its path. */
export function groupOf({ operation }: MadeTool): string {
  const [tag] = operation.tags;
  if (tag !== undefined) return tag;
  return (
    operation.path
      .split(/[/?#]/)
      .find((segment) => segment !== '' && !/^(?:\{.*|v\d+(?:\.\d+)?|api|rest)$/i.test(segment)) ?? 'other'
  );
}

export function isRead({ operation }: MadeTool): boolean {
  const { readOnlyHint } = hintsOf(operation) ?? {};
  return readOnlyHint ?? isSafeMethod(operation.method);
}

function nameOf({ operation }: MadeTool): string {
  return `${operation.method} ${operation.path}`;
}

/** Returns the texts that name an operation itself. `groupTexts` returns the names of its groups. */
function ownTexts(made: MadeTool): string[] {
  return [made.operation.operationId ?? '', made.name, made.operation.path, nameOf(made)];
}

function groupTexts(made: MadeTool): string[] {
  return [...made.operation.tags, groupOf(made)];
}

/** Selectors without `*`, and selectors with `*` split into the texts around the stars. All are lowercase. */
type Selectors = { exact: ReadonlySet<string>; patterns: readonly (readonly string[])[] };

/** Parses selectors. `*` matches any text; letter case is ignored. */
function selectorsOf(given: readonly string[]): Selectors {
  const parts = given.map((text) => partsOf(folded(text)));
  return {
    exact: new Set(parts.flatMap((one) => (one.length === 1 ? one : []))),
    patterns: parts.filter((one) => one.length > 1),
  };
}

function partsOf(selector: string): string[] {
  return selector.split(/\*+/);
}

function folded(text: string): string {
  return text.trim().toLowerCase();
}

/** Returns true if one of the texts matches one of the selectors. */
function fits(texts: readonly string[], { exact, patterns }: Selectors): boolean {
  return texts.some((text) => exact.has(text) || patterns.some((parts) => isMatch(text, parts)));
}

/** Returns true if a text contains these parts in order, the first at its beginning and the last at its end. */
function isMatch(text: string, parts: readonly string[]): boolean {
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  const end = text.length - last.length;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  // The first match of each part leaves the most text for the others, so no other position has to be tried.
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= end;
}

const lowered = (texts: readonly string[]) => texts.map((text) => text.toLowerCase());

export type Selection = { chosen: MadeTool[]; unmatched: string[] };

/** Returns the operations that the choices select; without `include`, all of them. Skipped operations are left out. */
export function select(all: readonly MadeTool[], choices: ImportChoices): Selection {
  const include = choices.include && selectorsOf(choices.include);
  const exclude = choices.exclude && selectorsOf(choices.exclude);
  const own = new Map(all.map((made) => [made, lowered(ownTexts(made))]));
  const texts = new Map(all.map((made) => [made, [...lowered(groupTexts(made)), ...(own.get(made) ?? [])]]));
  /** Returns true if an operation is named without `*`, so it is selected even if it is deprecated. */
  const isNamedItself = (made: MadeTool) => own.get(made)?.some((text) => include?.exact.has(text)) === true;
  const chosen = all.filter((made) => {
    const named = texts.get(made) ?? [];
    if (!made.tool || (choices.readOnly && !isRead(made)) || (exclude && fits(named, exclude))) return false;
    if (include && !fits(named, include)) return false;
    return !made.operation.isDeprecated || choices.deprecated === true || isNamedItself(made);
  });
  const known = new Set([...texts.values()].flat());
  const unmatched = (choices.include ?? []).filter((selector) => !isKnown(folded(selector), known));
  return { chosen, unmatched: unmatched.map((selector) => selector.trim()) };
}

/** Returns true if a selector matches one of these texts. */
function isKnown(selector: string, texts: ReadonlySet<string>): boolean {
  const parts = partsOf(selector);
  return parts.length === 1 ? texts.has(selector) : texts.values().some((text) => isMatch(text, parts));
}

export function groupsOf(all: readonly MadeTool[], order: readonly string[]): Group[] {
  const groups = new Map<string, Group>(
    order.map((name) => [name, { name, operations: 0, reads: 0, tokens: 0, skipped: 0 }]),
  );
  for (const made of all) {
    const name = groupOf(made);
    const group = groups.get(name) ?? { name, operations: 0, reads: 0, tokens: 0, skipped: 0 };
    groups.set(name, group);
    group.operations++;
    if (isRead(made)) group.reads++;
    if (!made.tool) group.skipped++;
    group.tokens += made.tokens;
  }
  return [...groups.values()].filter(({ operations }) => operations > 0);
}

/**
 * Proposes everything if it fits within the limits, and otherwise the operations with the highest score. With
 * `choices.for`, proposes the operations that match the sentence. `scores` holds the scores of `all`.
 */
export function propose(all: readonly MadeTool[], worth: readonly number[], choices: ImportChoices): Proposal {
  const worthOf = new Map(all.map((made, index) => [made, worth[index] ?? 0]));
  const usable = select(all, { ...choices, include: undefined }).chosen;
  const byWorth = usable.toSorted((a, b) => (worthOf.get(b) ?? 0) - (worthOf.get(a) ?? 0));
  const fitting = choices.for === undefined ? [] : fittingTools(byWorth, choices.for);
  if (fitting.length > 0) return named(all, fitting, 'the operations that match the sentence best');
  const missed = choices.for === undefined ? '' : 'no operation matches the sentence, so ';
  if (isSmall(usable)) return proposal(['*'], usable, `${missed}all operations, because they fit within the limits`);
  return named(all, byWorth, `${missed}the operations that agents use most, as far as the description shows`);
}

/**
 * Proposes the first operations that fit. Later small ones would only fill the remaining space, so they are ignored.
 */
function named(all: readonly MadeTool[], ranked: readonly MadeTool[], reason: string): Proposal {
  const first = firstThatFit(ranked.slice(0, 2 * proposed.tools));
  const counts = Map.groupBy(all, nameOf);
  const include = first.map((made) => {
    const name = nameOf(made);
    return counts.get(name)?.length === 1 && name.length <= longestSelector && !name.includes('*') ? name : made.name;
  });
  return proposal(include, first, reason);
}

/** Returns the tools that match a sentence, ranked by tool search and score. */
function fittingTools(byWorth: readonly MadeTool[], sentence: string): MadeTool[] {
  const index = indexOf(byWorth);
  const { best } = searchTools(index, sentence, byWorth.length);
  // Reciprocal rank fusion (G. Cormack et al., 2009): search ranks count double; `position` is the rank by score.
  const scores = best.map((position, rank) => [position, 2 / (20 + rank) + 1 / (20 + position)] as const);
  return scores.toSorted(([, a], [, b]) => b - a).map(([position]) => byWorth[position] as MadeTool);
}

function indexOf(all: readonly MadeTool[]): ToolIndex {
  const steps = indexing(all.length, (position) => searchedTool(all[position] as MadeTool));
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
}

function searchedTool({ operation, name, tool }: MadeTool): SearchedTool {
  const args = operation.inputs.map((input) => input.name);
  const { method, path, tags } = operation;
  return { name, title: undefined, description: tool?.description ?? '', method, url: path, arguments: args, tags };
}

function firstThatFit(ranked: readonly MadeTool[]): MadeTool[] {
  const kept: MadeTool[] = [];
  let tokens = 0;
  for (const made of ranked) {
    if (kept.length >= proposed.tools || tokens + made.tokens > proposed.tokens) continue;
    kept.push(made);
    tokens += made.tokens;
  }
  return kept;
}

function proposal(include: string[], chosen: readonly MadeTool[], reason: string): Proposal {
  return { include, tools: chosen.length, tokens: tokensOfAll(chosen), reason };
}

function isSmall(chosen: readonly MadeTool[]): boolean {
  return chosen.length <= proposed.tools && tokensOfAll(chosen) <= proposed.tokens;
}

export function tokensOfAll(chosen: readonly MadeTool[]): number {
  return chosen.reduce((sum, { tokens }) => sum + tokens, 0);
}
