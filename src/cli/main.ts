import { runServe } from './commands/serve.ts';

const args = process.argv.slice(2);
if (args.length === 1 && args[0] === 'serve') {
  // The service starts without what reads command lines.
  try {
    await runServe();
  } catch (error) {
    process.exitCode = (await import('./failure.ts')).reportFailure(error);
  }
} else {
  await (await import('./command-line.ts')).runCommandLine(args);
}

// A start that was refused half-way may have left something open.
if (process.exitCode) process.exit();
