import { AppError, getErrorMessage, type Problem } from '@toolhost/errors/errors';
import { CommanderError } from 'commander';
import { removeProblemList, toCommandTerms } from './command-terms.ts';

/** Prints a result to standard output. Everything else goes to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${sanitize(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, on one line otherwise. */
export function printJson(value: unknown): void {
  print(toJsonText(value, process.stdout.isTTY ? 2 : undefined));
}

/**
 * Serializes JSON and escapes the characters that `sanitize` would replace. `JSON.stringify` leaves those above U+007E
 * as they are.
 */
export function toJsonText(value: unknown, indent?: number): string {
  const escapeCharacter = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replaceAll(
    /(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu,
    escapeCharacter,
  );
}

/** Joins the lines of untrusted text, so that it cannot imitate several lines of output. */
export function toOneLine(text: string): string {
  return text.replaceAll(/\s*[\n\v\f\r\u0085\u2028\u2029]\s*/g, ' ');
}

/** Prints a message to standard error. Messages quote services and files, so control characters are replaced. */
export function printMessage(text: string): void {
  process.stderr.write(`${sanitize(text)}\n`);
}

/**
 * Matches control characters, including the color sequences of `createPainter` as a whole, and characters that change the
 * text direction, which would reorder what the terminal shows.
 */
const controlCharacters = /\p{Cc}(?:\[(?:0|2|31|32|33)m)?|[\u202a-\u202e\u2066-\u2069]/gu;
const allowedStarts = ['\n', '\t', '\u001b['];

/**
 * Replaces control characters other than line breaks, tabs, and colors, so that untrusted text cannot control the
 * terminal.
 */
function sanitize(text: string): string {
  return text.replaceAll(controlCharacters, (match) =>
    allowedStarts.some((start) => match.startsWith(start)) ? match : '\u{fffd}',
  );
}

/** Column of a table of keys or logins. The service updates the time at most once per minute. */
export const lastUseColumn = {
  'last used (to the minute)': ({ last_used_at }: { last_used_at?: string | undefined }) =>
    last_used_at === undefined ? 'never' : `${last_used_at.slice(0, 'YYYY-MM-DDThh:mm'.length)}Z`,
};

/**
 * Formats a table of entries. Each column shows a field of the entries or the result of a function. Columns are as wide
 * as their widest text. The last column is not padded.
 */
export function formatTable<Entry>(
  entries: readonly Entry[],
  columns: { [head: string]: (keyof Entry & string) | ((entry: Entry) => string | number) },
): string {
  const columnTexts = Object.entries(columns).map(([head, column]) => {
    const cells = entries.map((entry) => String(typeof column === 'string' ? entry[column] : column(entry)));
    return [head.toUpperCase(), ...cells.map(toOneLine)];
  });
  const paddedColumns = columnTexts.map((column) => {
    const width = Math.max(...column.map(({ length }) => length));
    return column.map((text) => text.padEnd(width));
  });
  const lines = ['', ...entries].map((_, row) => paddedColumns.map((column) => column[row]).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

type Color = 'green' | 'red' | 'yellow' | 'dim';

const colorCodes: Record<Color, number> = { green: 32, red: 31, yellow: 33, dim: 2 };

/** Returns a function that colors text if the terminal supports it and NO_COLOR is not set (https://no-color.org). */
export function createPainter(
  stream: { isTTY?: boolean },
  env: NodeJS.ProcessEnv,
): (text: string, color: Color) => string {
  const showsColors = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text, color) => (showsColors ? `\u001b[${colorCodes[color]}m${text}\u001b[0m` : text);
}

/** Code of a usage error that exits with 1, because exit code 2 of the command means "differences found". */
export const usageErrorCode = 'toolhost.refusedUsage';

/** Prints the reason for a failure to standard error, as text or as one JSON object. Returns the exit code. */
export function reportFailure(error: unknown, isJson = false): 0 | 1 | 2 {
  const isUsageError = error instanceof CommanderError;
  if (isUsageError && error.exitCode === 0) return 0;
  if (isJson) printMessage(toJsonText({ error: toFailureJson(error) }));
  // Commander has already printed its message.
  else if (!isUsageError) printMessage(`${getErrorPrefix()} ${formatFailure(error)}`);
  return isUsageError && error.code !== usageErrorCode ? 2 : 1;
}

/** Returns the prefix of an error message, in red if the terminal supports colors. */
export function getErrorPrefix(): string {
  return createPainter(process.stderr, process.env)('error:', 'red');
}

/** Converts a failure to JSON. `kind` is `usage`, the kind of an `AppError`, `failed`, or `internal`. */
function toFailureJson(error: unknown): { kind: string; message: string; problems: readonly Problem[] } {
  if (error instanceof CommanderError)
    return { kind: 'usage', message: formatUsageError(error.message).replace(/^error: /, ''), problems: [] };
  if (error instanceof AppError)
    return { kind: error.kind, message: formatHeadline(error), problems: getProblems(error) };
  return { kind: isExpectedError(error) ? 'failed' : 'internal', message: formatFailure(error), problems: [] };
}

function formatFailure(error: unknown): string {
  if (error instanceof AppError) return formatAppError(error);
  if (isExpectedError(error)) return formatExpectedError(error);
  const stack = error instanceof Error ? error.stack : String(error);
  return `unexpected error; this is a bug in toolhost\n${stack}`;
}

/**
 * Returns true for an error of the settings, the operating system, or the database, whose message helps the user. Other
 * errors have no code or a Node.js code, which starts with `ERR_`.
 */
function isExpectedError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = String((error as NodeJS.ErrnoException).code ?? 'ERR_');
  return error.name === 'ConfigError' || code === 'ERR_SQLITE_ERROR' || !code.startsWith('ERR_');
}

/** Formats an expected error. Joins the reasons of a host with several addresses, which fails once per address. */
function formatExpectedError(error: Error): string {
  const reasons =
    error instanceof AggregateError ? [...new Set(error.errors.map(getErrorMessage))].join('; ') : error.message;
  const isConnectionError = /^(ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH)$/.test(
    String((error as NodeJS.ErrnoException).code),
  );
  return isConnectionError ? `the database does not respond: ${reasons}` : reasons;
}

/** Formats a failure. A single problem below a general headline is the whole message. */
function formatAppError(error: AppError): string {
  const headline = formatHeadline(error);
  const problems = getProblems(error).map(({ path, message }) => (path ? `${path}: ${message}` : message));
  const [onlyProblem] = problems;
  if (problems.length === 1 && onlyProblem !== undefined && generalHeadlines.includes(headline)) return onlyProblem;
  return [headline, ...problems.map((problem) => `  ${problem}`)].join('\n');
}

const noHeadline = 'refused';
const generalHeadlines = [noHeadline, 'The input is not valid'];

function formatHeadline(error: AppError): string {
  return toCommandTerms(removeProblemList(error)) || noHeadline;
}

function getProblems({ problems }: AppError): Problem[] {
  return problems.map(({ path, message }) => ({ path, message: toCommandTerms(message) }));
}

/** Replaces the wording of the command-line parser. */
const usageErrors: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/^error: (unknown \w+) '(.*)'\n\((Did you mean .*)\)$/s, 'error: $1 "$2". $3'],
  [/^error: (unknown \w+) '(.*)'$/s, 'error: $1 "$2"'],
  [/^error: missing required argument '(.*)'$/, 'error: the argument <$1> is missing'],
  [
    /^error: too many arguments(?: for '(.*?)')?\. Expected 0 arguments but got \d+: (.*)\.$/s,
    'error: $1 takes no argument, but found "$2"',
  ],
  [
    /^error: too many arguments(?: for '(.*?)')?\. Expected (\d+) arguments? but got \d+: (.*)\.$/s,
    'error: $1 takes at most $2 arguments, but found "$3"',
  ],
  [/^error: option '(?:-\w, )?(--[\w-]+)(.*)' argument missing$/, 'error: $1 needs a value: $1$2'],
  [/^error: required option '(.*)' not specified$/, 'error: $1 is missing'],
  [
    /^error: option '(--[\w-]+).*' cannot be used with option '(--[\w-]+).*'$/,
    'error: $1 and $2 exclude each other. Use one of them',
  ],
  [/^error: option '(?:-\w, )?(--[\w-]+).*?' argument '(.*)' is invalid\. (.*)$/s, 'error: $1: found "$2"; $3'],
  [/^error: command-argument value '(.*)' is invalid for argument '(.*?)'\. (.*)$/s, 'error: <$2>: found "$1"; $3'],
  [/; Allowed choices are (.*)\.$/s, '; allowed: $1'],
];

/** Formats an error of the command-line parser as a sentence that says what was found. */
export function formatUsageError(message: string): string {
  return usageErrors.reduce((current, [pattern, replacement]) => current.replace(pattern, replacement), message);
}

/** Prints the text that an operation returns to agents, with the terms of the command line. */
export function printAgentText(text: string | undefined): void {
  print(toCommandTerms(text ?? ''));
}
