#!/usr/bin/env node
// Command line of the package and the image. Restarts itself with the flags below in the same process, so that signals
// reach the service directly. A checkout uses bin/toolhost instead, with the same flags.
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, '..', 'lib', 'apps', 'server', 'program', 'main.js');
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

function refuse(sentence) {
  process.stderr.write(`toolhost: ${sentence}\n`);
  process.exit(1);
}

if (!(major >= 24 || (major === 22 && minor >= 19))) {
  refuse(
    `Node 22.19 or a later 22.x version, or Node 24 or later, is required, and this is Node ${process.versions.node} (${process.execPath}). Install a supported version, for example from https://nodejs.org`,
  );
}
if (!existsSync(main))
  refuse('the compiled program is missing. In a checkout, use bin/toolhost, or run "npm run build" first');

// Explained in bin/toolhost.
const flags = ['--max-semi-space-size=8', '--v8-pool-size=1'];

/** Returns a per-user folder for the compile cache. In a shared temporary folder, other users could plant code. */
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
  // Before Node 26, node:sqlite prints an experimental warning at each start. A flag would not apply to threads.
  ...(major < 26 && { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --disable-warning=ExperimentalWarning`.trim() }),
};
// Without /proc, as in some sandboxes, the path of the Node executable is unknown.
if (typeof process.execve === 'function' && process.platform !== 'win32' && isAbsolute(process.execPath)) {
  process.execve(
    process.execPath,
    [process.execPath, ...process.execArgv, ...flags, main, ...process.argv.slice(2)],
    env,
  );
}
// If the process cannot be replaced, it runs without the flags.
await import(main);
