#!/usr/bin/env node
// Command line of the package and the image. A checkout uses bin/toolhost instead, with the same flags.
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

// An import would also load everything to which these modules refer, such as streams.
const { existsSync } = process.getBuiltinModule('node:fs');
const { enableCompileCache } = process.getBuiltinModule('node:module');
const { isAbsolute, join } = process.getBuiltinModule('node:path');

const main = join(import.meta.dirname, '..', 'lib', 'apps', 'server', 'program', 'main.js');
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

/** Returns true if this process was not started with the settings that it cannot change itself. */
function needsRestart() {
  // Before Node 26, node:sqlite prints an experimental warning at each start. A flag would not apply to threads.
  if (major < 26) return true;
  // Other commands end soon.
  if (!['serve', 'dev'].some((command) => process.argv.includes(command))) return false;
  const options = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')];
  return !process.env.MALLOC_ARENA_MAX || flags.some((flag) => !options.includes(flag));
}

const cache = compileCache();
process.env.UV_THREADPOOL_SIZE ||= '32';
if (cache) process.env.NODE_COMPILE_CACHE = cache;
// Without /proc, as in some sandboxes, the path of the Node executable is unknown.
const canRestart = typeof process.execve === 'function' && process.platform !== 'win32' && isAbsolute(process.execPath);
if (canRestart && needsRestart()) {
  // The program is replaced in the same process, so that signals reach the service directly.
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...flags, main, ...process.argv.slice(2)], {
    ...process.env,
    MALLOC_ARENA_MAX: process.env.MALLOC_ARENA_MAX || '1',
    ...(major < 26 && {
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --disable-warning=ExperimentalWarning`.trim(),
    }),
  });
}
if (cache) enableCompileCache(cache);
await import(main);
