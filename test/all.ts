/** `npm test`: every test file. Options such as `--test-name-pattern=…` go on to Node. */
import { testFiles } from './files.ts';
import { runInGroups } from './groups.ts';

process.exitCode = await runInGroups(testFiles(), process.argv.slice(2));
