import { CommanderError } from 'commander';
import { AppError, messageOf } from '../../errors.ts';
import { refusedUsage } from '../input/usage.ts';

/** Prints to standard error why a command failed, and returns the exit code. */
export function reportFailure(error: unknown): 0 | 1 | 2 {
  // Commander has already printed its message or the requested help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : error.code === refusedUsage ? 1 : 2;
  process.stderr.write(`error: ${failureText(error)}\n`);
  return 1;
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
