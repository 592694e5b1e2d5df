import { distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { getValueAt } from './dot-path.ts';
import {
  maxListedProblems,
  maxPathLength,
  type Problem,
  remainingProblemsLine,
  shortenProblem,
  truncateText,
} from './errors.ts';

type Issue = z.core.$ZodIssue;

/** Collects the problems of an input. Messages are created only for problems that will be shown. */
export class ProblemList {
  readonly #problems = new Map<string, Problem>();
  #count = 0;
  /** Comparison budget that all messages of the list share. */
  readonly suggestionBudget: SuggestionBudget;

  constructor(suggestionBudget = createSuggestionBudget()) {
    this.suggestionBudget = suggestionBudget;
  }

  /** Number of problems that were added. */
  get count(): number {
    return this.#count;
  }

  add(make: () => Problem): void {
    this.#count++;
    if (this.#problems.size >= maxListedProblems) return;
    const problem = shortenProblem(make());
    const key = `${problem.path}\0${problem.message}`;
    if (this.#problems.has(key)) this.#count--;
    else this.#problems.set(key, problem);
  }

  addAll(problems: readonly Problem[]): void {
    for (const problem of problems) this.add(() => problem);
  }

  /** Returns a view of this list that maps the path of each problem added through it with `mapPath`. */
  nested(mapPath: (path: string) => string): ProblemList {
    return new NestedProblemList(this, ({ path, message }) => ({ path: mapPath(path), message }));
  }

  /** Returns the listed problems, followed by the number of further ones. */
  all(): Problem[] {
    const listed = [...this.#problems.values()];
    const more = this.#count - listed.length;
    return more > 0 ? [...listed, remainingProblemsLine(more)] : listed;
  }
}

class NestedProblemList extends ProblemList {
  readonly #outer: ProblemList;
  readonly #map: (problem: Problem) => Problem;

  constructor(outer: ProblemList, map: (problem: Problem) => Problem) {
    super(outer.suggestionBudget);
    this.#outer = outer;
    this.#map = map;
  }

  override get count(): number {
    return this.#outer.count;
  }

  override add(make: () => Problem): void {
    this.#outer.add(() => this.#map(make()));
  }

  override all(): Problem[] {
    return this.#outer.all();
  }
}

/** Formats a path: `['tools', 2, 'url']` → `tools[2].url`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else text += text ? `.${String(segment)}` : String(segment);
  }
  return text;
}

/**
 * Joins names with dots: `['user', 'name']` → `user.name`. The result is shortened, because names in an input may have
 * any length.
 */
export function joinPath(path: readonly string[]): string {
  let text = '';
  for (const [index, segment] of path.entries()) {
    if (text.length > maxPathLength) break;
    text += (index === 0 ? '' : '.') + segment.slice(0, maxPathLength + 1);
  }
  return truncateText(text, maxPathLength);
}

/** Describes a value briefly for a message; never a whole document. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && !JSON.isRawJSON(value)) return 'an object';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text;
}

/** Names of fields whose values must not be repeated in a message. The same applies to everything in `secrets`. */
const sensitiveNames = /secret|token$|password|^value$/i;

function formatIssue(issue: Issue, description: string): string {
  switch (issue.code) {
    case 'invalid_type':
      return description === 'nothing'
        ? `required; ${formatAllowedType(issue.expected)}`
        : `found ${description}; ${formatAllowedType(issue.expected)}`;
    case 'invalid_value':
      return `found ${description}; allowed: ${issue.values.map((v) => JSON.stringify(v)).join(', ')}`;
    case 'too_small':
      return `found ${description}; ${formatAllowedSize(issue.origin, 'at least', issue.minimum)}`;
    case 'too_big':
      return `found ${description}; ${formatAllowedSize(issue.origin, 'at most', issue.maximum)}`;
    case 'not_multiple_of':
      return `found ${description}; allowed: a multiple of ${issue.divisor}`;
    case 'invalid_union':
      return `found ${description}; allowed: ${getExpectedTypes(issue.errors).join(' or ')}`;
    case 'custom':
      return issue.message;
    default:
      return `found ${description}; ${issue.message}`;
  }
}

function getExpectedTypes(variants: readonly (readonly Issue[])[]): string[] {
  const types = variants.flatMap((issues) =>
    issues.flatMap((issue) => (issue.code === 'invalid_type' ? [issue.expected] : [])),
  );
  return [...new Set(types)].map((type) => formatAllowedType(type).replace('allowed: ', ''));
}

function formatAllowedType(expected: string): string {
  const typeName = expected === 'int' ? 'whole number' : expected;
  return `allowed: ${/^[aeio]/.test(typeName) ? 'an' : 'a'} ${typeName}`;
}

const unitNames: Record<string, [one: string, many: string]> = {
  string: [' character', ' characters'],
  array: [' entry', ' entries'],
};

function formatAllowedSize(origin: string, bound: string, limit: number | bigint): string {
  const [singular, plural] = unitNames[origin] ?? ['', ''];
  return `allowed: ${bound} ${limit}${Number(limit) === 1 ? singular : plural}`;
}

/**
 * Adds zod issues as problems, each with its path, the value found, and the values allowed. `getAllowedKeys` returns
 * the allowed keys of the object at a path, for "did you mean".
 */
export function addZodIssues(
  problems: ProblemList,
  issues: readonly Issue[],
  input: unknown,
  getAllowedKeys: (path: string) => readonly string[] = () => [],
): void {
  for (const [index, issue] of issues.entries()) {
    if (issue.code === 'invalid_union') {
      const variantIssues = pickClosestVariant(issue);
      if (variantIssues) {
        addZodIssues(problems, variantIssues, input, getAllowedKeys);
        continue;
      }
    }
    if (issue.code !== 'unrecognized_keys') {
      if (!isRedundantSizeIssue(issue, issues[index - 1])) problems.add(() => toProblem(issue, input));
    } else
      for (const key of issue.keys)
        problems.add(() =>
          createUnknownFieldProblem(issue.path, key, getAllowedKeys(formatPath(issue.path)), problems.suggestionBudget),
        );
  }
}

/** Returns the issues of the union variant that a value matches best, among the variants of its type. */
export function pickClosestVariant({ errors, path }: z.core.$ZodIssueInvalidUnion): Issue[] | undefined {
  const sameTypeVariants = errors.filter(
    (issues) => !issues.some((issue) => issue.path.length === 0 && issue.code === 'invalid_type'),
  );
  const [closest] = sameTypeVariants.toSorted((a, b) => a.length - b.length);
  return closest?.map((issue) => ({ ...issue, path: [...path, ...issue.path] }) as Issue);
}

/** Returns true if an issue reports a size although the value has the wrong type, so its size is irrelevant. */
function isRedundantSizeIssue(issue: Issue, previous: Issue | undefined): boolean {
  return (
    (issue.code === 'too_small' || issue.code === 'too_big') &&
    previous?.code === 'invalid_type' &&
    formatPath(previous.path) === formatPath(issue.path)
  );
}

/** Returns zod issues as a list of problems. */
export function toProblems(
  issues: readonly Issue[],
  input: unknown,
  getAllowedKeys?: (path: string) => readonly string[],
): Problem[] {
  const problems = new ProblemList();
  addZodIssues(problems, issues, input, getAllowedKeys);
  return problems.all();
}

function createUnknownFieldProblem(
  path: readonly PropertyKey[],
  key: string,
  allowed: readonly string[],
  suggestionBudget: SuggestionBudget,
): Problem {
  const allowedText = allowed.length > 0 ? `; allowed: ${allowed.join(', ')}` : '';
  return {
    path: formatPath([...path, key]),
    message: `unknown field${suggestName(key, allowed, suggestionBudget) || allowedText}`,
  };
}

function toProblem(issue: Issue, input: unknown): Problem {
  const fieldName = String(issue.path.at(-1) ?? '');
  const value = getValueAt(input, issue.path);
  const isSensitive = sensitiveNames.test(fieldName) || issue.path.includes('secrets');
  const description = isSensitive && value !== undefined ? 'a value of the wrong form' : describeValue(value);
  return { path: formatPath(issue.path), message: formatIssue(issue, description) };
}

/**
 * Number of names that the suggestions in one response may still be compared with. Comparing two long names takes 2 µs,
 * and an input may have thousands of wrong names and thousands of right ones.
 */
export type SuggestionBudget = { remaining: number };

const maxComparisons = 2000;

/**
 * Returns the comparison budget of a response. Code that makes several suggestions for one response passes the same
 * budget on.
 */
export function createSuggestionBudget(): SuggestionBudget {
  return { remaining: maxComparisons };
}

const maxSuggestionLength = 100;
const maxCandidates = 1000;

/**
 * Returns "; did you mean `method`?" if an allowed word is close, or an empty text otherwise, including when the
 * response has no comparisons left. Considers at most 1,000 words.
 */
export function suggestName(word: string, allowed: readonly string[], suggestionBudget: SuggestionBudget): string {
  if (word.length > maxSuggestionLength || suggestionBudget.remaining <= 0) return '';
  const lowerCaseWord = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of allowed.slice(0, maxCandidates)) {
    const maxDistance = Math.floor((candidate.length + 1) / 3);
    if (Math.abs(candidate.length - word.length) > maxDistance || candidate.length > maxSuggestionLength) continue;
    if (suggestionBudget.remaining-- <= 0) break;
    const editDistance = distance(lowerCaseWord, candidate.toLowerCase());
    if (editDistance > maxDistance || editDistance >= bestDistance) continue;
    best = candidate;
    bestDistance = editDistance;
  }
  return best === undefined ? '' : `; did you mean \`${best}\`?`;
}

/** Maximum number of valid names that a wrong name is compared with. */
const maxValidNames = 1000;
/** Maximum number of names in one message. */
export const maxNamesInMessage = 10;
const minPrefixLength = 3;

/**
 * Returns the text that follows "there is no such …": a suggestion, or `fallback`. The reader must be allowed to see
 * all of the names.
 */
export function suggestNearest(
  name: string,
  names: readonly string[],
  suggestionBudget: SuggestionBudget,
  fallback = '',
): string {
  if (suggestionBudget.remaining <= 0) return fallback;
  const candidates = names.slice(0, maxValidNames);
  return suggestName(name, candidates, suggestionBudget) || suggestByPrefix(name, candidates) || fallback;
}

/**
 * Suggests a name that begins the same way. Someone who remembers only the beginning omits more characters than a
 * typing error would.
 */
function suggestByPrefix(name: string, names: readonly string[]): string {
  if (name.length < minPrefixLength) return '';
  const match = names.find((candidate) => candidate.startsWith(name) || name.startsWith(`${candidate}-`));
  return match === undefined ? '' : `; did you mean \`${match}\`?`;
}

/**
 * Like `suggestNearest`, but lists all names if there is no suggestion. For short lists, such as the tools of a server.
 * `none` and `all` introduce the list.
 */
export function suggestNearestOrList(
  name: string,
  names: readonly string[],
  suggestionBudget: SuggestionBudget,
  { none, all } = { none: '; it has none', all: '; it has: ' },
): string {
  return suggestNearest(name, names, suggestionBudget, names.length === 0 ? none : all + formatNames(names));
}

export function formatNames(names: readonly string[]): string {
  const more = names.length > maxNamesInMessage ? ` and ${names.length - maxNamesInMessage} more` : '';
  return names.slice(0, maxNamesInMessage).join(', ') + more;
}

const maxShownNames = 3;
const maxShownNameLength = 80;

/** Returns the first few names, shortened, and the number of the others. */
export function formatFirstNames(names: readonly string[]): string {
  const shownNames = names
    .slice(0, maxShownNames)
    .map((name) => (name.length > maxShownNameLength ? `${name.slice(0, maxShownNameLength)}…` : name));
  const hiddenCount = names.length - shownNames.length;
  return hiddenCount > 0 ? `${shownNames.join(', ')} and ${hiddenCount} more` : shownNames.join(', ');
}
