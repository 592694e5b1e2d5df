#!/usr/bin/env node
// The command line of the package and of the image. It begins again with the flags below, in the same process, so
// signals reach the service itself. A checkout has bin/toolhost instead, with the same flags.
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, '..', 'lib', 'program', 'files', 'main.js');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

function refuse(sentence) {
  process.stderr.write(`toolhost: ${sentence}\n`);
  process.exit(1);
}

if (!(major >= 24 || (major === 22 && minor >= 19))) {
  refuse(
    `this is Node ${process.versions.node} (${process.execPath}), and toolhost runs on Node 22.19 or newer of line 22, and on Node 24 and newer; install one of those, for example from https://nodejs.org`,
  );
}
if (!existsSync(main))
  refuse('there is no compiled program; in a checkout use bin/toolhost, or run "npm run build" first');

// bin/toolhost explains these.
const flags = [
  '--max-semi-space-size=8',
  '--no-allocation-site-pretenuring',
  '--expose-gc',
  '--heap-growing-percent=100',
  '--v8-pool-size=1',
];

/** Compiled code is kept for the user, not in a shared temporary folder, where others could plant code. */
function compileCache() {
  const { NODE_COMPILE_CACHE: given, XDG_CACHE_HOME: caches, HOME: home } = process.env;
  if (given) return given;
  const folder = caches || (home && join(home, '.cache'));
  return folder && join(folder, 'toolhost');
}

const cache = compileCache();
process.env.UV_THREADPOOL_SIZE ||= '32';
const env = {
  ...process.env,
  MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX || '1',
  ...(cache && { NODE_COMPILE_CACHE: cache }),
  // node:sqlite is called experimental before Node 26, and each start would say so. A flag would not reach threads.
  ...(major < 26 && { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --disable-warning=ExperimentalWarning`.trim() }),
};
// Without /proc, as in some sandboxes, the path of this Node is not known.
if (typeof process.execve === 'function' && process.platform !== 'win32' && isAbsolute(process.execPath)) {
  process.execve(
    process.execPath,
    [process.execPath, ...process.execArgv, ...flags, main, ...process.argv.slice(2)],
    env,
  );
}
// Where a process cannot be replaced, only the flags that V8 takes at any time.
for (const flag of flags.slice(1, 2)) setFlagsFromString(flag);
await import(main);
