import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../files.ts';

const execFileAsync = promisify(execFile);
const installTimeoutMs = 900_000;

/** Runs the npm of this machine with its settings and its cache. @throws Error with npm's output */
export async function npm(args: readonly string[], cwd: string): Promise<string> {
  const quietFlags = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const { stdout } = await execFileAsync('npm', [...args, ...quietFlags], {
    cwd,
    timeout: installTimeoutMs,
    maxBuffer: 50_000_000,
  });
  return stdout;
}

/**
 * Writes an empty project, so that npm does not search the parent folders for one. The install script of one package
 * may run.
 */
export async function writeEmptyProject(folder: string, scriptPackage = 'node'): Promise<void> {
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, allowScripts: { [scriptPackage]: true } }),
  );
}

/** An npm program that is too large for the dependencies, so that the tests that need it install it. */
export type NpmProgram = {
  package: string;
  version: string;
  command: string;
  /** Leaves out its optional packages. */
  omitsOptional?: true;
  /** Packages to install with it where it does not work with their newest versions. */
  companions?: readonly string[];
};

/**
 * Returns the folder with the command of such a program. The program is cached in this checkout, so it is installed
 * once.
 * @throws Error that names the package that could not be installed
 */
export async function ensureNpmProgram(program: NpmProgram): Promise<string> {
  const { package: name, version, command, omitsOptional, companions = [] } = program;
  const packageSpec = `${name}@${version}`;
  const cacheFolder = join(root, 'node_modules', '.cache', 'npm-programs', packageSpec.replace('/', '+'));
  const bin = join(cacheFolder, 'node_modules', '.bin');
  if (existsSync(join(bin, command))) return bin;
  await mkdir(dirname(cacheFolder), { recursive: true });
  const folder = await mkdtemp(`${cacheFolder}-`);
  try {
    await writeEmptyProject(folder, name);
    await npm(
      ['install', '--prefer-offline', ...(omitsOptional ? ['--omit=optional'] : []), packageSpec, ...companions],
      folder,
    );
    // The program itself may be an optional package, which npm omits without an error.
    const env = { HOME: folder, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
    await execFileAsync(join(folder, 'node_modules', '.bin', command), ['--version'], { env });
    await rename(folder, cacheFolder).catch((error: unknown) => {
      // Another test process has installed it in the meantime.
      if (!existsSync(join(bin, command))) throw error;
    });
  } catch (cause) {
    const advice = `Run "npm install ${packageSpec}" in an empty folder to see why. The tests need a registry that has this package.`;
    throw new Error(`These tests need the npm package ${packageSpec}, but npm failed to install it. ${advice}`, {
      cause,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return bin;
}
