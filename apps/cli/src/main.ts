import { repairJsonParse } from '@toolhost/json/json-reader';
import { runServe } from './commands/serve.ts';

repairJsonParse();
const args = process.argv.slice(2);
if (args.length === 1 && args[0] === 'serve') {
  // Starts the service without loading the command-line parser.
  try {
    await runServe();
  } catch (error) {
    process.exitCode = (await import('./print.ts')).reportFailure(error);
  }
} else {
  await (await import('./program.ts')).runCommandLine(args);
}

// A failed start may have left handles open that would keep the process alive.
if (process.exitCode) process.exit();
