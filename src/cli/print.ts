import { CommanderError } from 'commander';
import { AppError, messageOf, type Problem } from '../errors.ts';

/** Prints a result to standard output. Everything else goes to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${harmless(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, on one line otherwise. */
export function printJson(value: unknown): void {
  print(jsonText(value, process.stdout.isTTY ? 2 : undefined));
}

/**
 * Serializes JSON and escapes the characters that `harmless` would replace. `JSON.stringify` leaves those above U+007E
 * as they are.
 */
export function jsonText(value: unknown, indent?: number): string {
  const escaped = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replaceAll(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, escaped);
}

/** Joins the lines of untrusted text, so that it cannot imitate several lines of output. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\n\v\f\r\u0085\u2028\u2029]\s*/g, ' ');
}

/** Prints a message to standard error. Messages quote services and files, so control characters are replaced. */
export function note(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/**
 * Matches control characters, including the color sequences of `painter` as a whole, and characters that change the
 * text direction, which would reorder what the terminal shows.
 */
const controls = /\p{Cc}(?:\[(?:0|2|31|32|33)m)?|[\u202a-\u202e\u2066-\u2069]/gu;
const kept = ['\n', '\t', '\u001b['];

/**
 * Replaces control characters other than line breaks, tabs, and colors, so that untrusted text cannot control the
 * terminal.
 */
function harmless(text: string): string {
  return text.replaceAll(controls, (found) => (kept.some((start) => found.startsWith(start)) ? found : '\u{fffd}'));
}

/**
 * Formats a table of entries. Each column shows a field of the entries or the result of a function. Columns are as wide
 * as their widest text. The last column is not padded.
 */
export function tableOf<Entry>(
  entries: readonly Entry[],
  columns: { [head: string]: (keyof Entry & string) | ((entry: Entry) => string | number) },
): string {
  const texts = Object.entries(columns).map(([head, text]) => {
    const ofEntries = entries.map((entry) => String(typeof text === 'string' ? entry[text] : text(entry)));
    return [head.toUpperCase(), ...ofEntries.map(oneLine)];
  });
  const padded = texts.map((column) => {
    const width = Math.max(...column.map(({ length }) => length));
    return column.map((text) => text.padEnd(width));
  });
  const lines = ['', ...entries].map((_, row) => padded.map((column) => column[row]).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

type Colour = 'green' | 'red' | 'yellow' | 'dim';

const codes: Record<Colour, number> = { green: 32, red: 31, yellow: 33, dim: 2 };

/** Returns a function that colors text if the terminal supports it and NO_COLOR is not set (https://no-color.org). */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): (text: string, colour: Colour) => string {
  const shows = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text, colour) => (shows ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text);
}

/** Code of a usage error of a command whose exit code 2 has another meaning. */
export const refusedUsage = 'toolhost.refusedUsage';

/** Prints the reason of a failure to standard error, as text or as one JSON object. Returns the exit code. */
export function reportFailure(error: unknown, isJson = false): 0 | 1 | 2 {
  const isUsage = error instanceof CommanderError;
  if (isUsage && error.exitCode === 0) return 0;
  if (isJson) note(jsonText({ error: failureJson(error) }));
  // Commander has already printed its message.
  else if (!isUsage) note(`${paintedError()} ${failureText(error)}`);
  return isUsage && error.code !== refusedUsage ? 2 : 1;
}

/** Returns the prefix of an error message, in red if the terminal supports colors. */
export function paintedError(): string {
  return painter(process.stderr, process.env)('error:', 'red');
}

/** Converts a failure to JSON. `kind` is `usage`, the kind of an `AppError`, `failed`, or `internal`. */
function failureJson(error: unknown): { kind: string; message: string; problems: readonly Problem[] } {
  if (error instanceof CommanderError)
    return { kind: 'usage', message: error.message.replace(/^error: /, ''), problems: [] };
  if (error instanceof AppError) return { kind: error.kind, message: headline(error), problems: error.problems };
  return { kind: isRefusal(error) ? 'failed' : 'internal', message: failureText(error), problems: [] };
}

function failureText(error: unknown): string {
  if (error instanceof AppError) return [headline(error), ...problemLines(error)].join('\n');
  if (isRefusal(error)) return refusalText(error);
  const stack = error instanceof Error ? error.stack : String(error);
  return `unexpected error; this is a bug in toolhost\n${stack}`;
}

/** Returns true for an error of the settings, the operating system, or the database, whose message helps the user. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = String((error as NodeJS.ErrnoException).code ?? 'ERR_');
  return error.name === 'ConfigError' || code === 'ERR_SQLITE_ERROR' || !code.startsWith('ERR_');
}

/**
 * Formats the message of a refusal. A host with several addresses fails once per address, so the reasons are joined.
 */
function refusalText(error: Error): string {
  const reasons =
    error instanceof AggregateError ? [...new Set(error.errors.map(messageOf))].join('; ') : error.message;
  const isNoAnswer = /^(ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH)$/.test(
    String((error as NodeJS.ErrnoException).code),
  );
  return isNoAnswer ? `the database does not respond: ${reasons}` : reasons;
}

function problemLines({ problems }: AppError): string[] {
  return problems.map(({ path, message }) => `  ${path ? `${path}: ` : ''}${message}`);
}

/** Returns the message without the list of problems at its end, which is printed on separate lines. */
function headline({ message, problems }: AppError): string {
  const list = problems.map(({ path, message: what }) => (path ? `${path}: ${what}` : what)).join('; ');
  if (list === '' || !message.endsWith(list)) return message;
  return message.slice(0, -list.length).replace(/:\s*$/, '') || 'refused';
}
