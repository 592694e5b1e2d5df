import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Beside the installed packages and not in a shared temporary folder: whoever can write there can change the code anyway.
enableCompileCache(join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'toolhost'));

// Imported now and not above, or it would be compiled before the cache is on.
const { runCommandLine } = await import('./command-line.ts');
await runCommandLine(process.argv.slice(2));

// A start that was refused half-way may have left something open.
if (process.exitCode) process.exit();
