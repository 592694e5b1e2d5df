/** `npm run test:quick`: something of every layer, under a minute, without the checks. */
import { spawnSync } from 'node:child_process';
import { quickFiles, root } from './files.ts';
import { runInGroups } from './groups.ts';

const built = spawnSync(process.execPath, ['web/build.ts'], { cwd: root, stdio: 'inherit' }).status ?? 1;
process.exitCode = built || (await runInGroups(quickFiles, process.argv.slice(2)));
