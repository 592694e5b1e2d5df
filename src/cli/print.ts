import { CommanderError } from 'commander';
import { AppError, messageOf, type Problem } from '../errors.ts';

/** Results go to standard output, everything else to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${harmless(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, else on one line for programs. */
export function printJson(value: unknown): void {
  print(jsonText(value, process.stdout.isTTY ? 2 : undefined));
}

/** JSON in which no character is one that `harmless` would replace: JSON itself leaves those above U+007E as they are. */
export function jsonText(value: unknown, indent?: number): string {
  const escaped = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replaceAll(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, escaped);
}

/** A text of others on one line, so that it cannot look like several. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\n\v\f\r\u0085\u2028\u2029]\s*/g, ' ');
}

/** Messages hold texts of services and files, so nothing in them reaches a terminal as a command. */
export function note(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/**
 * A control character, with what makes a colour of `painter` of it; or one that changes the direction of writing, which
 * would show a text in another order.
 */
const controls = /\p{Cc}(?:\[(?:0|2|31|32|33)m)?|[\u202a-\u202e\u2066-\u2069]/gu;
const kept = ['\n', '\t', '\u001b['];

/** Replaces control characters but line breaks, tabs and colours, so that texts of others send no commands to a terminal. */
function harmless(text: string): string {
  return text.replaceAll(controls, (found) => (kept.some((start) => found.startsWith(start)) ? found : '\u{fffd}'));
}

/**
 * A table of entries, with a column for each head: a field of the entries, or what is made of one. Columns are as wide
 * as their widest text; the last one is not padded.
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

/** Colours texts at a terminal that shows colours, unless NO_COLOR is set (https://no-color.org). */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): (text: string, colour: Colour) => string {
  const shows = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text, colour) => (shows ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text);
}

/** Code of a wrong use of a command whose exit code 2 has another meaning. */
export const refusedUsage = 'toolhost.refusedUsage';

/** Prints to standard error why a command failed, as text or as one JSON object, and returns the exit code. */
export function reportFailure(error: unknown, isJson = false): 0 | 1 | 2 {
  const isUsage = error instanceof CommanderError;
  if (isUsage && error.exitCode === 0) return 0;
  if (isJson) note(jsonText({ error: failureJson(error) }));
  // Commander has already printed its message.
  else if (!isUsage) note(`${paintedError()} ${failureText(error)}`);
  return isUsage && error.code !== refusedUsage ? 2 : 1;
}

/** The first word of a failure, red at a terminal that shows colours. */
export function paintedError(): string {
  return painter(process.stderr, process.env)('error:', 'red');
}

/** A failure for programs. `kind` is `usage`, that of an error of the service, or `failed`. */
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
  return `something unexpected happened; this is a fault of toolhost\n${stack}`;
}

/** Whether an error comes from settings, the system or the database, so that its message tells a person what to do. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = String((error as NodeJS.ErrnoException).code ?? 'ERR_');
  return error.name === 'ConfigError' || code === 'ERR_SQLITE_ERROR' || !code.startsWith('ERR_');
}

/** Message of a refusal. A host with several addresses fails once for each of them, so their reasons are joined. */
function refusalText(error: Error): string {
  const reasons =
    error instanceof AggregateError ? [...new Set(error.errors.map(messageOf))].join('; ') : error.message;
  const isNoAnswer = /^(ECONN\w+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH)$/.test(
    String((error as NodeJS.ErrnoException).code),
  );
  return isNoAnswer ? `the database does not answer: ${reasons}` : reasons;
}

function problemLines({ problems }: AppError): string[] {
  return problems.map(({ path, message }) => `  ${path ? `${path}: ` : ''}${message}`);
}

/** The message without the list of problems at its end, which is printed on separate lines. */
function headline({ message, problems }: AppError): string {
  const list = problems.map(({ path, message: what }) => (path ? `${path}: ${what}` : what)).join('; ');
  if (list === '' || !message.endsWith(list)) return message;
  return message.slice(0, -list.length).replace(/:\s*$/, '') || 'refused';
}
