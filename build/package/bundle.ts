/** Bundles the program for the package and the image into a few files, because each module slows the start. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type CodeSplittingNameFunction, type Plugin, rolldown } from 'rolldown';

const root = join(import.meta.dirname, '..', '..');

/** Folders of our own code. A module's `id` is its real path, even if it is imported by package name. */
const ownFolders = [join(root, 'apps'), join(root, 'packages')];

const paths = {
  main: 'apps/cli/src/main.ts',
  /** All commands. They load their parts of the server with `command-line.ts`. */
  commands: 'apps/cli/src/program.ts',
  serverParts: 'apps/server/src/command-line.ts',
  service: 'apps/server/src/process/serve.ts',
  devService: 'apps/server/src/process/dev.ts',
};

/** Matches files that are started as a thread. Each becomes an entry point of the bundle. */
const threadFilePattern = /(?<=new URL\()'\.[\w./-]*?([\w-]+)\.ts'(?=, import\.meta\.url\))/g;
/** Matches the declaration of `require`. The bundler only recognizes `require` without it. */
const requireDeclaration = /^const require = createRequire\(import\.meta\.url\);$/m;

/**
 * Writes the bundle into a folder, with source maps.
 * @returns the files whose code is in the bundle
 */
export async function writeBundle(folder: string, commit: string): Promise<string[]> {
  const threadPaths = findThreadPaths();
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries([paths.main, ...threadPaths].map((path) => [basename(path, '.ts'), join(root, path)])),
    platform: 'node',
    preserveEntrySignatures: 'allow-extension',
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
    // V8 keeps the sources in memory, with two bytes per character unless all characters are Latin-1.
    charset: 'ascii',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: {
      groups: [{ debugName: 'service', name: createNameChunk(threadPaths), includeDependenciesRecursively: false }],
    },
  });
  await build.close();
  return output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []));
}

/** Returns the paths of the files that are started as threads. */
function findThreadPaths(): string[] {
  return globSync('{apps,packages}/*/src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }).flatMap((path) => {
    const code = readFileSync(join(root, path), 'utf8');
    return [...code.matchAll(threadFilePattern)].map(([quotedPath]) => join(path, '..', quotedPath.slice(1, -1)));
  });
}

/**
 * Returns a function that names the chunk of a module. The bundler alone would split what the service loads at its start
 * into more than a hundred chunks, because it separates all modules that are not always imported together. Each costs as
 * much as compiling 20 KB of code. So these modules are only separated by the threads and commands that also use them,
 * which must not load the whole service. All other modules are left to the bundler.
 */
function createNameChunk(threadPaths: string[]): CodeSplittingNameFunction {
  let names: Map<string, string> | undefined;
  return (id, graph) => {
    names ??= nameChunks(threadPaths, graph);
    return names.get(id) ?? null;
  };
}

/** Returns the names of the chunks by module, for the modules that the service loads at its start. */
function nameChunks(threadPaths: string[], graph: Parameters<CodeSplittingNameFunction>[1]): Map<string, string> {
  const toId = (path: string) => join(root, path);
  /** Returns all modules that are loaded with these modules. */
  const collectLoaded = (...entries: string[]): Set<string> => {
    const ids = new Set(entries);
    for (const id of ids) for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) ids.add(imported);
    return ids;
  };
  const findLater = (id: string) => graph.getModuleInfo(id)?.dynamicallyImportedIds ?? [];
  const threads = threadPaths.map((path) => collectLoaded(toId(path)));
  const jobs = new Set(threads.flatMap((ids) => [...ids].flatMap(findLater)));
  const services = [toId(paths.service), toId(paths.devService)];
  const users = [
    ...threads,
    ...Array.from(jobs, (id) => collectLoaded(id)),
    collectLoaded(toId(paths.commands)),
    collectLoaded(...findLater(toId(paths.serverParts)).filter((id) => !services.includes(id))),
  ];
  const namesByUsers = new Map<string, string>();
  return new Map(
    Array.from(collectLoaded(toId(paths.service)), (id) => {
      const key = users.map((ids) => ids.has(id)).join();
      const name = namesByUsers.get(key) ?? `service${namesByUsers.size}`;
      namesByUsers.set(key, name);
      return [id, name];
    }),
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
