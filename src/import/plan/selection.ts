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
  return readOnlyHint ?? (operation.method === 'GET' || operation.method === 'HEAD');
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

export type Group = { name: string; operations: number; reads: number; tokens: number; skipped: number };

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

/** A choice of operations that fits the bounds: everything, everything that reads, whole groups, or the first ones. */
export type Proposal = { include: string[]; readOnly: boolean; tools: number; tokens: number; reason: string };

export function propose(all: readonly MadeTool[], order: readonly string[]): Proposal {
  const usable = all.filter((made) => made.tool && !made.operation.isDeprecated);
  if (isSmall(usable)) return proposal(['*'], false, usable, 'all operations fit');
  const reads = usable.filter(isRead);
  // A search or two among a hundred writes are no server.
  if (reads.length * 10 >= usable.length && isSmall(reads))
    return proposal(['*'], true, reads, 'all operations that read fit');
  for (const candidates of [usable, reads]) {
    const found = wholeGroups(candidates, order);
    if (found) return { ...found, readOnly: candidates === reads };
  }
  const first = firstThatFit(
    (reads.length > 0 ? reads : usable).filter((made) => nameOf(made).length <= longestSelector),
  );
  return proposal(first.map(nameOf), false, first, 'no group fits, so the first operations');
}

function firstThatFit(usable: readonly MadeTool[]): MadeTool[] {
  const kept: MadeTool[] = [];
  let tokens = 0;
  for (const made of usable) {
    if (kept.length >= proposed.tools || tokens + made.tokens > proposed.tokens) continue;
    kept.push(made);
    tokens += made.tokens;
  }
  return kept;
}

/** Groups in the order of the document, as long as what their names select fits. */
function wholeGroups(usable: readonly MadeTool[], order: readonly string[]): Omit<Proposal, 'readOnly'> | undefined {
  const byText = new Map<string, MadeTool[]>();
  for (const made of usable) {
    const texts = new Set([...groupTexts(made), ...ownTexts(made)].map((text) => text.toLowerCase()));
    for (const text of texts) {
      const others = byText.get(text);
      if (others) others.push(made);
      else byText.set(text, [made]);
    }
  }
  const groups = new Set(usable.map(groupOf));
  const names = [...new Set([...order, ...groups])].filter(
    (name) => groups.has(name) && !name.includes('*') && name.length <= longestSelector,
  );
  const included: string[] = [];
  let chosen = new Set<MadeTool>();
  for (const name of names) {
    const next = chosen.union(new Set(byText.get(folded(name)) ?? []));
    if (!isSmall([...next])) continue;
    included.push(name);
    chosen = next;
  }
  if (included.length === 0) return undefined;
  const reason = `the first groups that fit ${proposed.tools} tools and ${proposed.tokens} tokens`;
  const { readOnly: _, ...found } = proposal(included, false, [...chosen], reason);
  return found;
}

function proposal(include: string[], readOnly: boolean, chosen: readonly MadeTool[], reason: string): Proposal {
  return { include, readOnly, tools: chosen.length, tokens: tokensOfAll(chosen), reason };
}

function isSmall(chosen: readonly MadeTool[]): boolean {
  return chosen.length <= proposed.tools && tokensOfAll(chosen) <= proposed.tokens;
}

export function tokensOfAll(chosen: readonly MadeTool[]): number {
  return chosen.reduce((sum, { tokens }) => sum + tokens, 0);
}
