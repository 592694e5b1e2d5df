import { closest, distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import type { Problem } from '../errors.ts';

type Issue = z.core.$ZodIssue;

/** `['tools', 2, 'url']` → `tools[2].url`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text ? `.${String(part)}` : String(part);
  }
  return text;
}

/** "; did you mean `method`?" when one of the allowed words is close, else nothing. */
export function didYouMean(word: string, allowed: readonly string[]): string {
  if (allowed.length === 0 || word.length > 100) return '';
  const best = closest(word, [...allowed]);
  return distance(word.toLowerCase(), best.toLowerCase()) <= Math.floor((best.length + 1) / 3)
    ? `; did you mean \`${best}\`?`
    : '';
}

/** `['user', 'name']` → `user.name`, cut where somebody sent a name of a thousand letters. */
export function dotted(path: readonly string[]): string {
  const text = path.join('.');
  return text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text;
}

/** What a value is, short enough for a message and never a whole document. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text;
}

/** Field names whose values must not be repeated in a message. */
const unspeakable = /secret|token$|password|^value$/i;

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function issueText(issue: Issue, found: string): string {
  switch (issue.code) {
    case 'invalid_type':
      return found === 'nothing'
        ? `required; ${article(issue.expected)}`
        : `found ${found}; ${article(issue.expected)}`;
    case 'invalid_value':
      return `found ${found}; allowed: ${issue.values.map((v) => JSON.stringify(v)).join(', ')}`;
    case 'too_small':
      return `found ${found}; ${sized(issue.origin, 'at least', issue.minimum)}`;
    case 'too_big':
      return `found ${found}; ${sized(issue.origin, 'at most', issue.maximum)}`;
    case 'not_multiple_of':
      return `found ${found}; allowed: a multiple of ${issue.divisor}`;
    case 'custom':
      return issue.message;
    default:
      return `found ${found}; ${issue.message}`;
  }
}

function article(expected: string): string {
  const what = expected === 'int' ? 'whole number' : expected;
  return `allowed: ${/^[aeio]/.test(what) ? 'an' : 'a'} ${what}`;
}

const units: Record<string, [one: string, many: string]> = {
  string: [' character', ' characters'],
  array: [' entry', ' entries'],
};

function sized(origin: string, bound: string, limit: number | bigint): string {
  const [one, many] = units[origin] ?? ['', ''];
  return `allowed: ${bound} ${limit}${Number(limit) === 1 ? one : many}`;
}

/**
 * Turns zod's issues into problems that say where, what was found and what is allowed.
 * `keysAt` names the allowed keys of the object at a path, for "did you mean".
 */
export function problemsOf(
  issues: readonly Issue[],
  input: unknown,
  keysAt: (path: string) => readonly string[] = () => [],
): Problem[] {
  return issues.flatMap((issue): Problem[] => {
    if (issue.code === 'unrecognized_keys') {
      const allowed = keysAt(pathText(issue.path));
      return issue.keys.map((key) => ({
        path: pathText([...issue.path, key]),
        message: `unknown field${didYouMean(key, allowed) || (allowed.length ? `; allowed: ${allowed.join(', ')}` : '')}`,
      }));
    }
    const last = String(issue.path.at(-1) ?? '');
    const value = valueAt(input, issue.path);
    const found = unspeakable.test(last) && value !== undefined ? 'a value of the wrong form' : shown(value);
    return [{ path: pathText(issue.path), message: issueText(issue, found) }];
  });
}
