import { reportFailure } from './print/failure.ts';
import { createProgram } from './program.ts';

/**
 * Runs one command and sets the exit code: 0 success, 1 failure or refusal, 2 wrong usage. With `--json` a failure is
 * one JSON object on standard error.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  process.stdout.on('error', stopOnClosedPipe);
  const isJson = isJsonWanted(args);
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

/** A closed pipe, as in `toolhost … | head`, is no failure. */
function stopOnClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
}
