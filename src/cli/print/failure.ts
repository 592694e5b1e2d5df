import { CommanderError } from 'commander';
import { AppError, messageOf, type Problem } from '../../errors.ts';
import { refusedUsage } from '../input/usage.ts';
import { jsonText, note } from './print.ts';

/** Prints to standard error why a command failed, as text or as one JSON object, and returns the exit code. */
export function reportFailure(error: unknown, isJson = false): 0 | 1 | 2 {
  const isUsage = error instanceof CommanderError;
  if (isUsage && error.exitCode === 0) return 0;
  if (isJson) note(jsonText({ error: failureJson(error) }));
  // Commander has already printed its message.
  else if (!isUsage) note(`error: ${failureText(error)}`);
  return isUsage && error.code !== refusedUsage ? 2 : 1;
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
