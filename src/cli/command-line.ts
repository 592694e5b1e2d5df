import { AppError } from '../errors.ts';
import { reportFailure } from './print/failure.ts';
import { createProgram } from './program.ts';

/**
 * Runs one command and sets the exit code: 0 success, 1 failure or refusal, 2 wrong usage. With `--json` a failure is
 * one JSON object on standard error.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  const isJson = isJsonWanted(args);
  process.stdout.on('error', (error) => endWithoutOutput(error, isJson));
  // A message that cannot be written does not keep a command from its work.
  process.stderr.on('error', () => undefined);
  try {
    await createProgram({ isQuiet: isJson }).parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = reportFailure(error, isJson);
  }
}

function isJsonWanted(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? undefined : end).includes('--json');
}

/** A closed pipe, as in `toolhost … | head`, is no failure: the exit code is that of the command so far. */
function endWithoutOutput(error: NodeJS.ErrnoException, isJson: boolean): never {
  if (error.code === 'EPIPE') process.exit();
  const refusal = new AppError('unavailable', `standard output cannot be written: ${error.message}`);
  process.exit(reportFailure(refusal, isJson));
}
