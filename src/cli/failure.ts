import { CommanderError } from 'commander';
import { AppError, messageOf } from '../errors.ts';

/** Says on standard error why a command did not do its work, and gives the exit code. */
export function reportFailure(error: unknown): 0 | 1 | 2 {
  // Commander has printed its message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  process.stderr.write(`error: ${failureText(error)}\n`);
  return 1;
}

function failureText(error: unknown): string {
  if (error instanceof AppError) return [headline(error), ...problemLines(error)].join('\n');
  if (isRefusal(error)) return refusalText(error);
  const stack = error instanceof Error ? error.stack : String(error);
  return `something unexpected happened; this is a fault of toolhost\n${stack}`;
}

/** The settings are wrong, or the system or the database said no: words that a person can act upon. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = String((error as NodeJS.ErrnoException).code ?? 'ERR_');
  return error.name === 'ConfigError' || code === 'ERR_SQLITE_ERROR' || !code.startsWith('ERR_');
}

/** A host with several addresses fails once for each of them. Commands that talk to a service word that themselves. */
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

/** The message without the problems at its end, which get lines of their own. */
function headline({ message, problems }: AppError): string {
  const list = problems.map(({ path, message: what }) => (path ? `${path}: ${what}` : what)).join('; ');
  if (list === '' || !message.endsWith(list)) return message;
  return message.slice(0, -list.length).replace(/:\s*$/, '') || 'refused';
}
