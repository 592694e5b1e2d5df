import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../files.ts';

const run = promisify(execFile);
const installMs = 900_000;

/** Runs the npm of this machine, with its settings and its cache. @throws Error with what npm wrote */
export async function npm(args: readonly string[], cwd: string): Promise<string> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const { stdout } = await run('npm', [...args, ...quiet], { cwd, timeout: installMs, maxBuffer: 50_000_000 });
  return stdout;
}

/** An empty project, so that npm does not look for one in the folders above. */
export async function writeEmptyProject(folder: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"private":true,"allowScripts":{"node":true}}');
}

/**
 * The folder of the program `node` of a version. The npm package `node` brings it; it is kept in a cache of this
 * checkout, so it is installed once.
 * @throws Error that says what could not be installed
 */
export async function needNode(version: string): Promise<string> {
  if (`v${version}` === process.version) return dirname(process.execPath);
  const kept = join(root, 'node_modules', '.cache', 'node-lines', version);
  const bin = join(kept, 'node_modules', 'node', 'bin');
  if (existsSync(bin)) return bin;
  await mkdir(dirname(kept), { recursive: true });
  const folder = await mkdtemp(`${kept}-`);
  try {
    await writeEmptyProject(folder);
    await npm(['install', '--prefer-offline', `node@${version}`], folder);
    await rename(folder, kept).catch((error: unknown) => {
      // Another process of the tests has installed it meanwhile.
      if (!existsSync(bin)) throw error;
    });
  } catch (cause) {
    throw new Error(`These tests need Node ${version}, which "npm install node@${version}" did not install.`, {
      cause,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return bin;
}
