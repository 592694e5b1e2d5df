/** Bundles the program for the package and the image into a few files, because each module slows the start. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..', '..');

/** Folders of our own code. A module's `id` is its real path, even if it is imported by package name. */
const ownFolders = [join(root, 'apps'), join(root, 'packages')];

/** Matches files that are started as a thread. Each becomes an entry point of the bundle. */
const threadFilePattern = /(?<=new URL\()'\.[\w./-]*?([\w-]+)\.ts'(?=, import\.meta\.url\))/g;
/** Matches the declaration of `require`. The bundler only recognizes `require` without it. */
const requireDeclaration = /^const require = createRequire\(import\.meta\.url\);$/m;

/**
 * Writes the bundle into a folder, with source maps.
 * @returns the files whose code is in the bundle
 */
export async function writeBundle(folder: string, commit: string): Promise<string[]> {
  const build = await rolldown({
    cwd: root,
    input: getEntryPoints(),
    platform: 'node',
    // pg uses pg-native if it is installed.
    external: ['pg-native'],
    plugins: [flattenImports(commit)],
    onLog(level, log, report) {
      // A dependency of the local login evaluates a constant string of its own.
      if (log.code !== 'EVAL') report(level === 'warn' ? 'error' : level, log);
    },
  });
  const { output } = await build.write({
    dir: folder,
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  });
  await build.close();
  return output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []));
}

/** Returns the entry points: the command line, and the files that are started as threads. */
function getEntryPoints(): Record<string, string> {
  const threadFiles = globSync('{apps,packages}/*/src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }).flatMap(
    (path) => {
      const code = readFileSync(join(root, path), 'utf8');
      return [...code.matchAll(threadFilePattern)].map(([quotedPath]) => join(path, '..', quotedPath.slice(1, -1)));
    },
  );
  return Object.fromEntries(
    ['apps/cli/src/main.ts', ...threadFiles].map((path) => [basename(path, '.ts'), join(root, path)]),
  );
}

/** Rewrites paths, because all bundled files are in one folder. Only line lengths change, so source maps stay valid. */
function flattenImports(commit: string): Plugin {
  return {
    name: 'as-one-folder',
    transform(code, id) {
      if (id === join(root, 'package.json')) {
        const { name, version } = JSON.parse(code) as { name: string; version: string };
        return { code: JSON.stringify({ name, version, commit }), map: null };
      }
      if (!ownFolders.some((folder) => id.startsWith(folder))) return undefined;
      const flattenedCode = code.replace(threadFilePattern, "'./$1.js'").replace(requireDeclaration, '');
      return { code: flattenedCode, map: null };
    },
  };
}
