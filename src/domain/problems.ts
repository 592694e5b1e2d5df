import { distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { furtherProblems, longestPath, mostProblems, type Problem, shortProblem, shortText } from '../errors.ts';
import { valueAt } from './json/dot-path.ts';

type Issue = z.core.$ZodIssue;

/** Collects the problems of an input. Messages are created only for problems that will be shown. */
export class ProblemList {
  readonly #problems = new Map<string, Problem>();
  #count = 0;
  /** Comparison budget that all messages of the list share. */
  readonly guesses: Guesses;

  constructor(guesses = newGuesses()) {
    this.guesses = guesses;
  }

  /** Number of problems that were added. */
  get count(): number {
    return this.#count;
  }

  add(make: () => Problem): void {
    this.#count++;
    if (this.#problems.size >= mostProblems) return;
    const problem = shortProblem(make());
    const key = `${problem.path}\0${problem.message}`;
    if (this.#problems.has(key)) this.#count--;
    else this.#problems.set(key, problem);
  }

  addAll(found: readonly Problem[]): void {
    for (const problem of found) this.add(() => problem);
  }

  /** Returns a list that adds to this one and maps each path with `changePath`. */
  within(changePath: (path: string) => string): ProblemList {
    return new InnerList(this, changePath);
  }

  /** Returns the listed problems, followed by the number of further ones. */
  all(): Problem[] {
    const shown = [...this.#problems.values()];
    const more = this.#count - shown.length;
    return more > 0 ? [...shown, furtherProblems(more)] : shown;
  }
}

class InnerList extends ProblemList {
  readonly #outer: ProblemList;
  readonly #changePath: (path: string) => string;

  constructor(outer: ProblemList, changePath: (path: string) => string) {
    super(outer.guesses);
    this.#outer = outer;
    this.#changePath = changePath;
  }

  override get count(): number {
    return this.#outer.count;
  }

  override add(make: () => Problem): void {
    this.#outer.add(() => {
      const { path, message } = make();
      return { path: this.#changePath(path), message };
    });
  }
}

/** Formats a path: `['tools', 2, 'url']` → `tools[2].url`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text ? `.${String(part)}` : String(part);
  }
  return text;
}

/**
 * Joins names with dots: `['user', 'name']` → `user.name`. The result is shortened, because names in an input may have
 * any length.
 */
export function dotted(path: readonly string[]): string {
  let text = '';
  for (const [index, part] of path.entries()) {
    if (text.length > longestPath) break;
    text += (index === 0 ? '' : '.') + part.slice(0, longestPath + 1);
  }
  return shortText(text, longestPath);
}

/** Describes a value briefly for a message; never a whole document. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && !JSON.isRawJSON(value)) return 'an object';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text;
}

/** Names of fields whose values must not be repeated in a message. The same applies to everything in `secrets`. */
const sensitiveNames = /secret|token$|password|^value$/i;

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
    case 'invalid_union':
      return `found ${found}; allowed: ${typesOf(issue.errors).join(' or ')}`;
    case 'custom':
      return issue.message;
    default:
      return `found ${found}; ${issue.message}`;
  }
}

function typesOf(shapes: readonly (readonly Issue[])[]): string[] {
  const types = shapes.flatMap((issues) =>
    issues.flatMap((each) => (each.code === 'invalid_type' ? [each.expected] : [])),
  );
  return [...new Set(types)].map((type) => article(type).replace('allowed: ', ''));
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
 * Adds zod issues as problems, each with its path, the value found, and the values allowed. `keysAt` returns the
 * allowed keys of the object at a path, for "did you mean".
 */
export function addIssues(
  problems: ProblemList,
  issues: readonly Issue[],
  input: unknown,
  keysAt: (path: string) => readonly string[] = () => [],
): void {
  for (const [index, issue] of issues.entries()) {
    if (issue.code === 'invalid_union') {
      const chosen = chosenShape(issue);
      if (chosen) {
        addIssues(problems, chosen, input, keysAt);
        continue;
      }
    }
    if (issue.code !== 'unrecognized_keys') {
      if (!isOfWrongType(issue, issues[index - 1])) problems.add(() => issueProblem(issue, input));
    } else
      for (const key of issue.keys)
        problems.add(() => unknownField(issue.path, key, keysAt(pathText(issue.path)), problems.guesses));
  }
}

/** Returns the issues of the union variant that a value matches best, among the variants of its type. */
export function chosenShape({ errors, path }: z.core.$ZodIssueInvalidUnion): Issue[] | undefined {
  const fitting = errors.filter(
    (issues) => !issues.some((each) => each.path.length === 0 && each.code === 'invalid_type'),
  );
  const [closest] = fitting.toSorted((a, b) => a.length - b.length);
  return closest?.map((issue) => ({ ...issue, path: [...path, ...issue.path] }) as Issue);
}

/** Returns true if an issue reports a size although the value has the wrong type, so its size is irrelevant. */
function isOfWrongType(issue: Issue, before: Issue | undefined): boolean {
  return (
    (issue.code === 'too_small' || issue.code === 'too_big') &&
    before?.code === 'invalid_type' &&
    pathText(before.path) === pathText(issue.path)
  );
}

/** Returns zod issues as a list of problems. */
export function problemsOf(
  issues: readonly Issue[],
  input: unknown,
  keysAt?: (path: string) => readonly string[],
): Problem[] {
  const problems = new ProblemList();
  addIssues(problems, issues, input, keysAt);
  return problems.all();
}

function unknownField(
  path: readonly PropertyKey[],
  key: string,
  allowed: readonly string[],
  guesses: Guesses,
): Problem {
  const known = allowed.length > 0 ? `; allowed: ${allowed.join(', ')}` : '';
  return { path: pathText([...path, key]), message: `unknown field${didYouMean(key, allowed, guesses) || known}` };
}

function issueProblem(issue: Issue, input: unknown): Problem {
  const last = String(issue.path.at(-1) ?? '');
  const value = valueAt(input, issue.path);
  const isSensitive = sensitiveNames.test(last) || issue.path.includes('secrets');
  const found = isSensitive && value !== undefined ? 'a value of the wrong form' : shown(value);
  return { path: pathText(issue.path), message: issueText(issue, found) };
}

/**
 * Number of names that the suggestions in one response may still be compared with. Comparing two long names takes 2 µs,
 * and an input may have thousands of wrong names and thousands of right ones.
 */
export type Guesses = { left: number };

const mostCompared = 2000;

/**
 * Returns the comparison budget of a response. Code that makes several suggestions for one response passes the same
 * budget on.
 */
export function newGuesses(): Guesses {
  return { left: mostCompared };
}

const longestGuess = 100;
const mostAllowed = 1000;

/**
 * Returns "; did you mean `method`?" if an allowed word is close, or an empty text otherwise, including when the
 * response has no comparisons left. Considers at most 1,000 words.
 */
export function didYouMean(word: string, allowed: readonly string[], guesses: Guesses): string {
  if (word.length > longestGuess || guesses.left <= 0) return '';
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const guess of allowed.slice(0, mostAllowed)) {
    const most = Math.floor((guess.length + 1) / 3);
    if (Math.abs(guess.length - word.length) > most || guess.length > longestGuess) continue;
    if (guesses.left-- <= 0) break;
    const far = distance(wanted, guess.toLowerCase());
    if (far > most || far >= least) continue;
    best = guess;
    least = far;
  }
  return best === undefined ? '' : `; did you mean \`${best}\`?`;
}

/** Maximum number of valid names that a wrong name is compared with. */
const mostRightNames = 1000;
/** Maximum number of names in one message. */
export const mostNamed = 10;
const leastBeginning = 3;

/**
 * Returns the text that follows "there is no such …": a suggestion, or `otherwise`. The reader must be allowed to see
 * all of the names.
 */
export function nearest(name: string, names: readonly string[], guesses: Guesses, otherwise = ''): string {
  if (guesses.left <= 0) return otherwise;
  const compared = names.slice(0, mostRightNames);
  return didYouMean(name, compared, guesses) || beginsAlike(name, compared) || otherwise;
}

/**
 * Suggests a name that begins the same way. Someone who remembers only the beginning omits more characters than a
 * typing error would.
 */
function beginsAlike(name: string, names: readonly string[]): string {
  if (name.length < leastBeginning) return '';
  const found = names.find((other) => other.startsWith(name) || name.startsWith(`${other}-`));
  return found === undefined ? '' : `; did you mean \`${found}\`?`;
}

/**
 * Like `nearest`, but lists all names if there is no suggestion. For short lists, such as the tools of a server. `none`
 * and `all` introduce the list.
 */
export function nearestOrAll(
  name: string,
  names: readonly string[],
  guesses: Guesses,
  { none, all } = { none: '; it has none', all: '; it has: ' },
): string {
  return nearest(name, names, guesses, names.length === 0 ? none : all + listed(names));
}

export function listed(names: readonly string[]): string {
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return names.slice(0, mostNamed).join(', ') + more;
}

const mostShown = 3;
const longestShown = 80;

/** Returns the first few names, shortened, and the number of the others. */
export function firstNames(names: readonly string[]): string {
  const shown = names
    .slice(0, mostShown)
    .map((name) => (name.length > longestShown ? `${name.slice(0, longestShown)}…` : name));
  const left = names.length - shown.length;
  return left > 0 ? `${shown.join(', ')} and ${left} more` : shown.join(', ');
}
