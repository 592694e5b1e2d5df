import { parseDotPath, toItemIndex } from '@toolhost/errors/dot-path';
import { createPatternMatcher } from '@toolhost/json-schema/pattern-match';
import { StepBudget, StepLimitExceeded } from '@toolhost/json-schema/step-budget';

const valueOrigins = ['callback', 'token', 'userinfo'] as const;

/** Where a value of a login comes from. `names` is one parameter of the callback, or a path in a JSON response. */
export type ValuePath = { origin: (typeof valueOrigins)[number]; names: readonly string[] };

/** Parses the `from` of a value. Returns undefined if it names no source. */
export function parseValuePath(text: string): ValuePath | undefined {
  const origin = valueOrigins.find((name) => text.startsWith(`${name}.`));
  if (origin === undefined) return undefined;
  const rest = text.slice(origin.length + 1);
  const names = origin === 'callback' ? [rest] : parseDotPath(rest);
  return names.length > 0 && names.every((name) => name !== '') ? { origin, names } : undefined;
}

/**
 * Returns the path of the userinfo list that a person chooses from: the names before the index. Undefined if the path
 * has no index, or belongs to another response.
 */
export function getListPath({ origin, names }: ValuePath): readonly string[] | undefined {
  const index = origin === 'userinfo' ? names.findIndex((name) => toItemIndex(name) !== undefined) : -1;
  return index < 0 ? undefined : names.slice(0, index);
}

/** Matches one label in place of `*`. It excludes Punycode, whose names can look like others. */
const labelPattern = /^(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns true if a value is an https origin, exactly as written in a URL, whose host is one of `hosts`. */
export function isDeclaredOrigin(value: string, hosts: readonly string[]): boolean {
  const [, host] = /^https:\/\/([a-z0-9.-]{1,253})$/.exec(value) ?? [];
  return host !== undefined && hosts.some((declared) => matchesHost(host, declared));
}

function matchesHost(host: string, declared: string): boolean {
  if (!declared.startsWith('*.')) return host === declared;
  const suffix = declared.slice(1);
  return host.endsWith(suffix) && labelPattern.test(host.slice(0, -suffix.length));
}

/** Maximum number of characters of a text that a pattern is applied to. */
const maxPatternText = 1000;
const maxSteps = 500_000;

/** The parts of a pattern before, in, and after its first group. */
type GroupedPattern = { before: string; group: string; after: string };

/**
 * Splits a pattern at its first group. Returns undefined if it has no group outside all others, or if an alternative or
 * a quantifier applies to the group.
 */
export function splitAtGroup(pattern: string): GroupedPattern | undefined {
  const tokens = [...pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]|<[^>]*>)|[()|]|./gsu)];
  let depth = 0;
  let start: number | undefined;
  let content: [from: number, to: number] | undefined;
  for (const { 0: text, index } of tokens) {
    const isCapturing = text === '(' || /^\(\?<[^=!]/.test(text);
    if (text === '|' && depth === 0) return undefined;
    if (text.startsWith('(')) {
      if (isCapturing && depth === 0 && start === undefined) start = index + text.length;
      depth++;
    } else if (text === ')') {
      depth--;
      if (depth === 0 && start !== undefined) content ??= [start, index];
    }
  }
  if (!content) return undefined;
  const [from, to] = content;
  const after = pattern.slice(to + 1);
  if (/^[*+?{]/.test(after)) return undefined;
  return { before: pattern.slice(0, from).replace(/\((?:\?<[^>]*>)?$/, ''), group: pattern.slice(from, to), after };
}

/**
 * Returns the text of a pattern's first group, if the pattern matches the whole text. The matcher has no groups, so the
 * parts of the pattern are matched separately, within a step budget that no pattern or text can exceed.
 */
export function extractGroup(pattern: string, text: string): string | undefined {
  const parts = splitAtGroup(pattern);
  if (!parts || text.length > maxPatternText) return undefined;
  const steps = new StepBudget(maxSteps);
  const [matchesBefore, matchesGroup, matchesAfter] = [parts.before, parts.group, parts.after].map((part) =>
    createPatternMatcher(`^(?:${part})$`),
  ) as [Matcher, Matcher, Matcher];
  try {
    const positions = Array.from({ length: text.length + 1 }, (_, index) => index);
    const starts = positions.filter((index) => matchesBefore(text.slice(0, index), steps));
    const ends = positions.filter((index) => matchesAfter(text.slice(index), steps)).reverse();
    for (const start of starts)
      for (const end of ends)
        if (start <= end && matchesGroup(text.slice(start, end), steps)) return text.slice(start, end);
    return undefined;
  } catch (error) {
    if (error instanceof StepLimitExceeded) return undefined;
    throw error;
  }
}

type Matcher = ReturnType<typeof createPatternMatcher>;
