import { isSafeMethod } from '../../domain/http/headers.ts';
import { searchTools } from '../../domain/search/search-tools.ts';
import { indexing, type SearchedTool, type ToolIndex } from '../../domain/search/tool-index.ts';
import type { Group, Proposal } from '../plan-outline.ts';
import { hintsOf } from '../tools/effects.ts';
import type { MadeTool } from '../tools/made-tool.ts';
import type { ImportChoices } from './choices.ts';

/** The bounds of the proposal: some clients cut off above 40 tools, and every conversation pays for the list. */
export const proposed = { tools: 40, tokens: 10_000 } as const;

/** Longest text of `include`, so a longer one cannot be proposed. */
const longestSelector = 500;

/** Name of the group of an operation: its first tag, or else the first word of its path. */
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

/** Texts by which an operation itself is named, and those of its groups. */
function ownTexts(made: MadeTool): string[] {
  return [made.operation.operationId ?? '', made.name, made.operation.path, nameOf(made)];
}

function groupTexts(made: MadeTool): string[] {
  return [...made.operation.tags, groupOf(made)];
}

/** Selectors without `*`, and those with it by the texts around the stars; all in lower case. */
type Selectors = { exact: ReadonlySet<string>; patterns: readonly (readonly string[])[] };

/** `*` stands for any text; upper and lower case are the same. */
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

/** Whether one of the texts fits one of the selectors. */
function fits(texts: readonly string[], { exact, patterns }: Selectors): boolean {
  return texts.some((text) => exact.has(text) || patterns.some((parts) => isMatch(text, parts)));
}

/** Whether a text has these parts one after the other, the first at its beginning and the last at its end. */
function isMatch(text: string, parts: readonly string[]): boolean {
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  const end = text.length - last.length;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  // The first place of each part leaves most to the others, so no other place has to be tried.
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

/** The operations that the choices name; without `include` all of them. Skipped ones are left out. */
export function select(all: readonly MadeTool[], choices: ImportChoices): Selection {
  const include = choices.include && selectorsOf(choices.include);
  const exclude = choices.exclude && selectorsOf(choices.exclude);
  const own = new Map(all.map((made) => [made, lowered(ownTexts(made))]));
  const texts = new Map(all.map((made) => [made, [...lowered(groupTexts(made)), ...(own.get(made) ?? [])]]));
  /** Whether an operation is named without `*`, so that it is wanted even if it is deprecated. */
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

/** Whether a selector fits one of these texts. */
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
 * Proposes everything when it fits, otherwise the operations that are worth most; with `choices.for` those that fit the
 * sentence. `worth` are those of `all`.
 */
export function propose(all: readonly MadeTool[], worth: readonly number[], choices: ImportChoices): Proposal {
  const worthOf = new Map(all.map((made, index) => [made, worth[index] ?? 0]));
  const usable = select(all, { ...choices, include: undefined }).chosen;
  const byWorth = usable.toSorted((a, b) => (worthOf.get(b) ?? 0) - (worthOf.get(a) ?? 0));
  const fitting = choices.for === undefined ? [] : fittingTools(byWorth, choices.for);
  if (fitting.length > 0) return named(all, fitting, 'the operations that fit the sentence best');
  const missed = choices.for === undefined ? '' : 'no operation fits the sentence, so ';
  if (isSmall(usable)) return proposal(['*'], usable, `${missed}all operations, which fit`);
  return named(all, byWorth, `${missed}the operations that agents use most, as far as the description shows`);
}

/** The first operations that fit. Of those that come much later small ones would only fill what is left. */
function named(all: readonly MadeTool[], ranked: readonly MadeTool[], reason: string): Proposal {
  const first = firstThatFit(ranked.slice(0, 2 * proposed.tools));
  const counts = Map.groupBy(all, nameOf);
  const include = first.map((made) => {
    const name = nameOf(made);
    return counts.get(name)?.length === 1 && name.length <= longestSelector && !name.includes('*') ? name : made.name;
  });
  return proposal(include, first, reason);
}

/** The tools that fit a sentence: what the search for tools ranks first, and of those what is worth more. */
function fittingTools(byWorth: readonly MadeTool[], sentence: string): MadeTool[] {
  const index = indexOf(byWorth);
  const { best } = searchTools(index, sentence, byWorth.length);
  // Reciprocal rank fusion (G. Cormack et al., 2009): the search counts double, and positions are those by worth.
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
