import { runCommandLine } from './command-line.ts';

await runCommandLine(process.argv.slice(2));

// A start that was refused half-way may have left something open.
if (process.exitCode) process.exit();
