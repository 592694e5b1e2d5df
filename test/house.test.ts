import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';
import { root, testFiles } from './files.ts';

/**
 * A source file: its path in the repository, its package or app, its text, and the source files that it imports: all of
 * them, those whose values it imports, and of these the ones that are evaluated before it.
 */
type Source = { path: string; unit: string; text: string; imports: string[]; values: string[]; evaluated: string[] };

/** Manifest of a package or app; `exports` maps each public module to its source file. */
type Manifest = { name: string; exports?: Record<string, string>; dependencies?: Record<string, string> };

/** Packages and apps by the names that imports have for them, such as `@toolhost/json`. */
const manifests = new Map(
  globSync('{packages,apps}/*/package.json', { cwd: root }).map((path) => {
    const manifest = JSON.parse(readFileSync(join(root, path), 'utf8')) as Manifest;
    return [manifest.name, { ...manifest, folder: dirname(path) }] as const;
  }),
);

/** Resolves a specifier to a path in the repository. Returns undefined for a module that is not ours. */
function resolveImport(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return join(dirname(path), specifier);
  const [, name = '', module = ''] = /^(@toolhost\/[\w-]+)\/(.+)$/.exec(specifier) ?? [];
  const manifest = manifests.get(name);
  const file = manifest?.exports?.[`./${module}`];
  return file === undefined ? undefined : join(manifest?.folder ?? '', file);
}

function readSources(paths: readonly string[]): Source[] {
  return paths.map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const toPaths = (specifiers: (string | undefined)[]) =>
      specifiers.map((specifier = '') => resolveImport(path, specifier)).filter((target) => target !== undefined);
    const lazy = [...text.matchAll(/import\(\s*'((?:\.|@toolhost\/)[^']+)'/g)].map(([, target]) => target);
    const statements = [...text.matchAll(/^(?:import|export)\s([^;']*?)from '((?:\.|@toolhost\/)[^']+)'/gm)];
    const ofValues = statements.filter(([, names = '']) => !importsOnlyTypes(names)).map(([, , target]) => target);
    return {
      path,
      unit: getUnit(path),
      text,
      imports: toPaths([...statements.map(([, , target]) => target), ...lazy]),
      values: toPaths([...ofValues, ...lazy]),
      evaluated: toPaths(ofValues),
    };
  });
}

/** Returns the package or app of a file. */
function getUnit(path: string): string {
  return path.split('/').slice(0, 2).join('/');
}

/** Returns true for an import of types alone, of which nothing is left at run time. */
function importsOnlyTypes(names: string): boolean {
  return names.startsWith('type ') || (names.startsWith('{') && !/[{,]\s*(?!type\s)\w/.test(names));
}

const sources = readSources(globSync('{packages,apps}/*/src/**/*.{ts,tsx}', { cwd: root, exclude: ['**/*.test.ts'] }));
const unitTests = readSources(testFiles().filter((path) => !path.startsWith('test/')));
const server = sources.filter(({ unit }) => unit === 'apps/server');
const serverFolder = 'apps/server/src/';

/** Packages from the ground floor up: each may import those before it. */
const packages = [
  ...['errors', 'json', 'json-schema', 'credentials', 'limits', 'tool-config', 'tool-search', 'mcp-protocol'],
  ...['mcp-clients', 'openapi-to-tools', 'safe-http', 'mcp-doctor'],
];

/** Returns the imports of a package that lead to a package above it, or to an app. */
function findUpwardImports({ path, unit, imports }: Source): string[] {
  return imports
    .filter((target) => /^(packages|apps)\//.test(target) && getUnit(target) !== unit)
    .filter((target) => {
      const [kind, name = ''] = target.split('/');
      return kind !== 'packages' || packages.indexOf(name) > packages.indexOf(unit.slice('packages/'.length));
    })
    .map((target) => `${path} imports ${target}`);
}

const settings = ['config.ts', 'variables.ts', 'master-keys.ts', 'setting-addresses.ts'];

/** Folders that each folder of the server may import. It may also import itself and the files next to the folders. */
const mayImport: Record<string, readonly string[]> = {
  http: [],
  snippets: [],
  store: [],
  telemetry: [],
  gateway: ['store', 'http', 'snippets'],
  oauth: ['store', 'http'],
  operations: ['store', 'snippets'],
  manage: ['store', 'operations', 'http'],
  threads: ['gateway', 'operations'],
  edge: ['http', ...settings],
  local: ['store', 'operations', 'manage', 'http', ...settings],
  app: [
    ...['store', 'telemetry', 'gateway', 'oauth', 'operations', 'manage', 'threads', 'edge', 'local', 'http'],
    ...settings,
  ],
  process: ['app', 'local', 'edge', 'manage', 'telemetry', 'http', ...settings],
  'command-line.ts': ['app', 'process', ...settings],
};

/** Returns the folder of a server file, or the file itself if it is next to the folders. */
const folderOf = (path: string) => path.slice(serverFolder.length).split('/')[0] as string;

function isAllowed(from: string, to: string): boolean {
  if (from === to || mayImport[from]?.includes(to)) return true;
  // Files next to the folders may import one another, and are imported by every folder; settings only by some.
  return to.endsWith('.ts') && !settings.includes(to);
}

/** Returns the first cycle found by following the edges of a graph. */
function findCycle(next: ReadonlyMap<string, ReadonlySet<string>>): string | undefined {
  const open: string[] = [];
  const done = new Set<string>();
  const follow = (name: string): string | undefined => {
    if (open.includes(name)) return [...open.slice(open.indexOf(name)), name].join(' → ');
    if (done.has(name)) return undefined;
    open.push(name);
    for (const to of next.get(name) ?? []) {
      const cycle = follow(to);
      if (cycle) return cycle;
    }
    open.pop();
    done.add(name);
    return undefined;
  };
  for (const name of next.keys()) {
    const cycle = follow(name);
    if (cycle) return cycle;
  }
  return undefined;
}

type Edges = { from: string; to: readonly string[] }[];

function graphOf(edges: Edges): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const { from, to } of edges)
    for (const name of to) if (name !== from) graph.set(from, (graph.get(from) ?? new Set()).add(name));
  return graph;
}

/** Adds the files that a file leads to, over any number of imports. */
function addReachable(file: string, graph: ReadonlyMap<string, ReadonlySet<string>>, reached = new Set<string>()) {
  for (const next of graph.get(file) ?? []) {
    if (reached.has(next)) continue;
    reached.add(next);
    addReachable(next, graph, reached);
  }
  return reached;
}

/** Returns the imports of other folders, including imports of types, that close a cycle. */
function findFolderCycles(): string[] {
  const graph = graphOf(sources.map(({ path, imports }) => ({ from: path, to: imports })));
  return sources.flatMap(({ path, imports }) =>
    imports
      .filter((target) => dirname(target) !== dirname(path) && addReachable(target, graph).has(path))
      .map((target) => `${path} imports ${target}, which leads back to it`),
  );
}

const getPaths = (found: readonly Source[]) => found.map(({ path }) => path);

/** Fails if there are violations, and says how to fix them. */
function assertNone(faults: readonly (string | undefined)[], advice: string): void {
  const found = faults.filter((fault) => fault !== undefined);
  assert.ok(found.length === 0, `${advice}:\n  ${found.join('\n  ')}`);
}

/** Reads the pages that are written by hand, with their links and the paths that they name in code. */
function writtenPages() {
  const names = globSync('{*,docs/*,docs/operations/*,docs/contributing/*,bench/*}.md', { cwd: root });
  return names.map((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    const links = [...text.matchAll(/\[([^\]]*)\]\(([\w./-]+\.\w+)(?:#[\w-]+)?\)/g)].map(
      ([, label = '', target = '']) => ({ label, file: join(dirname(page), target) }),
    );
    const paths = [...text.matchAll(/`([\w.*-]+\/[\w./*-]*)`/g)].map(([, path = '']) => path).filter(isPath);
    return { page, links, paths };
  });
}

const isPath = (text: string) =>
  /^(apps|packages|build|test|docs|bench|examples|migrations)\/|\.(ts|tsx|md|sql|yml)$/.test(text);
/** Returns true if a path exists, relative to the repository or to its page. */
const isFound = (path: string, page: string) =>
  ['', 'src', 'apps/dashboard/src', dirname(page)].some(
    (folder) => globSync(join(folder, path.replace('NNNN-name', '*')), { cwd: root }).length > 0,
  );

/** Returns the files that are evaluated with a source file. */
function loadedWith(path: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const target of sources.find((source) => source.path === path)?.evaluated ?? []) loadedWith(target, loaded);
  return loaded;
}

describe('the pages', () => {
  const pages = writtenPages();

  it('name and link only files that exist', () => {
    const missing = pages.flatMap(({ page, links, paths }) => [
      ...links.filter(({ file }) => !existsSync(join(root, file))).map(({ file }) => `${page}: ${file}`),
      ...paths.filter((path) => !isFound(path, page)).map((path) => `${page}: ${path}`),
    ]);
    assertNone(missing, 'These files are named by a page and do not exist; name the file that has the thing now');
  });

  it('draw a tree of folders that exist', () => {
    const tree = /```\n(packages\/[\s\S]*?)```/.exec(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))?.[1] ?? '';
    const folders = [...tree.matchAll(/(?<=^|\s)([\w-]+)\/(?=\s)/g)].map(([, name]) => name as string);
    assert.ok(folders.length > 40);
    const missing = folders.filter((name) => {
      const patterns = [name, `{packages,apps,build}/${name}/`, `{apps,packages}/*/src/**/${name}/`];
      return globSync(patterns, { cwd: root }).length === 0;
    });
    assertNone(missing, 'These folders of the tree do not exist; name those that there are');
  });

  it('link each function to the file that has it', () => {
    const named = pages
      .flatMap(({ page, links }) =>
        links.map(({ label, file }) => ({ page, file, name: /^`(\w+)`$/.exec(label)?.[1] })),
      )
      .filter(({ file }) => file.endsWith('.ts'));
    assert.ok(named.length > 50);
    const isDeclared = ({ file, name }: (typeof named)[number]) =>
      new RegExp(`(function|const|class|type) ${name}\\b`).test(readFileSync(join(root, file), 'utf8'));
    const wrong = named.filter((link) => !isDeclared(link));
    assertNone(
      wrong.map(({ page, file, name }) => `${page}: ${name} is not in ${file}`),
      'Link the file that has the function now',
    );
  });
});

describe('the packages', () => {
  it('export each public module by name, without wildcards and index files', () => {
    const faults = [...manifests.values()].flatMap(({ folder, exports = {} }) =>
      Object.entries(exports).flatMap(([name, file]) => {
        const source = sources.find(({ path }) => path === join(folder, file));
        if (name.includes('*') || source === undefined) return [`${folder}: ${name} is no module`];
        return /^export \* from/m.test(source.text) ? [`${folder}: ${name} re-exports a whole module`] : [];
      }),
    );
    assertNone(faults, 'Name each public module in `exports`, and import from the file that declares');
  });

  it('are imported only through their exports', () => {
    const isHidden = (target: string) => {
      const { folder, exports = {} } = [...manifests.values()].find((one) => target.startsWith(`${one.folder}/`)) ?? {};
      return folder !== undefined && !Object.values(exports).includes(`./${relative(folder, target)}`);
    };
    const faults = sources.flatMap(({ path, unit, imports }) =>
      imports
        .filter((target) => !target.startsWith(`${unit}/`) && isHidden(target))
        .map((target) => `${path} imports ${target}`),
    );
    assertNone(faults, 'Add the module to the `exports` of its package, or do without it');
    const deep = sources.flatMap(({ path, unit, text }) =>
      [...text.matchAll(/from '(\.[^']+)'/g)]
        .map(([, target = '']) => join(dirname(path), target))
        .filter((target) => /^(packages|apps|test)\//.test(target) && !target.startsWith(`${unit}/`))
        .map((target) => `${path} imports ${target}`),
    );
    assertNone(deep, 'Import `@toolhost/…` instead of a path into another package');
  });

  it('give the command line one entry to the server, next to the catalog of operations', () => {
    const entries = [`${serverFolder}command-line.ts`, `${serverFolder}operations/index.ts`];
    const faults = sources
      .filter(({ unit }) => unit === 'apps/cli')
      .flatMap(({ path, imports }) =>
        imports
          .filter((target) => target.startsWith(serverFolder) && !entries.includes(target))
          .map((target) => `${path} imports ${target}`),
      );
    assertNone(
      faults,
      'Add what the command line needs to its entry, with `import()` unless every start loads it anyway',
    );
    const users = server.filter(({ imports }) => imports.includes(entries[0] as string)).map(({ path }) => path);
    assertNone(users, 'Import from the file that declares; only the command line uses its entry');
  });

  it('import only packages below them', () => {
    const inPackages = [...sources, ...unitTests].filter(({ unit }) => unit.startsWith('packages/'));
    assertNone(inPackages.flatMap(findUpwardImports), 'Pass the value as an argument, or move the module down');
  });

  it('have a README that shows how to import each of them', () => {
    const missing = [...manifests.values()]
      .filter(({ folder }) => folder.startsWith('packages/'))
      .filter(({ folder, name }) => {
        const file = join(root, folder, 'README.md');
        return !existsSync(file) || !readFileSync(file, 'utf8').includes(`from '${name}/`);
      })
      .map(({ folder }) => folder);
    assertNone(missing, 'Write a README of one screen with the public API and an example');
  });
});

describe('the unit tests', () => {
  it('import their package by path, other packages through exports, and code for tests from test/support', () => {
    const shared = /^test\/(support\/|sets\.ts$|files\.ts$)/;
    const faults = unitTests.flatMap(({ path, unit, text }) =>
      [...text.matchAll(/(?:from|import\() ?'(\.[^']+)'/g)]
        .map(([, target = '']) => join(dirname(path), target))
        .filter((target) => !target.startsWith(`${unit}/`) && !shared.test(target))
        .map((target) => `${path} imports ${target}`),
    );
    assertNone(faults, 'Import `@toolhost/…`, or move the test to test/');
  });

  it('start no service', () => {
    const support = readSources(globSync('test/support/**/*.ts', { cwd: root }));
    const graph = graphOf([...unitTests, ...support].map(({ path, values }) => ({ from: path, to: values })));
    // The starters are processes that only open a database.
    const service = /^test\/support\/(?:toolhost\/(?!starters\.ts$)|browser\/|oauth\/|agents\/)/;
    const faults = unitTests.flatMap(({ path }) =>
      [...addReachable(path, graph)].filter((target) => service.test(target)).map((target) => `${path}: ${target}`),
    );
    assertNone(faults, 'Move the test to test/: the tests there go through public entry points');
  });
});

describe('the house', () => {
  it('lets folders of the server import only what its table allows', () => {
    const faults = server.flatMap(({ path, imports }) => {
      const from = folderOf(path);
      if (settings.includes(from)) return [];
      if (!from.endsWith('.ts') && !(from in mayImport)) return [`${path}: the folder ${from} is not in the table`];
      return imports
        .filter((target) => target.startsWith(serverFolder) && !isAllowed(from, folderOf(target)))
        .map((target) => `${path} imports ${target}`);
    });
    assertNone(faults, 'Pass the value as an argument, or move it to a folder that the importing one may import');
  });

  it('has no cycle of values between or within packages', () => {
    const files = graphOf(sources.map(({ path, values }) => ({ from: path, to: values })));
    assertNone([findCycle(files)], 'Merge files that need one another, or move what both need below them');
    const units = graphOf(sources.map(({ unit, imports }) => ({ from: unit, to: imports.map(getUnit) })));
    assertNone([findCycle(units)], 'Move the module to the package that is imported by the other one');
  });

  it('has no import cycle, except of types within one folder', () => {
    assertNone(findFolderCycles(), 'Move the type to the folder that is imported by the other one');
  });

  it('has no cycle of folders that lie side by side', () => {
    const code = sources.filter(({ unit }) => unit !== 'apps/dashboard');
    const folders = new Set(code.map(({ path }) => dirname(dirname(path))));
    for (const parent of folders) {
      const childOf = (path: string) => path.slice(parent.length + 1).split('/')[0] as string;
      const isInFolder = (path: string) => path.startsWith(`${parent}/`) && childOf(path) !== basename(path);
      const edges = code
        .filter(({ path }) => isInFolder(path))
        .map(({ path, imports }) => ({ from: childOf(path), to: imports.filter(isInFolder).map(childOf) }));
      assertNone(
        [findCycle(graphOf(edges))],
        `Move the file that is imported against the order of ${parent} into the folder that is imported`,
      );
    }
  });

  it('exports each name once', () => {
    const homes = new Map<string, string[]>();
    for (const { path, text } of sources.filter(({ unit }) => unit !== 'apps/dashboard')) {
      for (const [, name = ''] of text.matchAll(/^export (?:async )?(?:function\*?|const|class|type) (\w+)/gm))
        homes.set(name, [...(homes.get(name) ?? []), path]);
    }
    assertNone(
      [...homes].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths.join(', ')}`),
      'Give things that differ names that differ, and declare what is the same once',
    );
  });

  it('[find B1] decides nothing by the clock of a process', () => {
    // `processClocks` feeds the database clock; the identity provider of local mode lives and dies with its process.
    const own = ['apps/server/src/app/runtime-options.ts', 'apps/server/src/local/identity.ts'];
    const readers = sources.filter(
      ({ path, unit, text }) =>
        unit !== 'apps/dashboard' && /\bDate\.now\b|new Date\(\)/.test(text) && !own.includes(path),
    );
    assertNone(getPaths(readers), 'Take `now` as an argument; it is the time of the database');
  });

  it('[find A1] parses configurations in several turns, but for those that are known to be short', () => {
    const short = ['apps/server/src/gateway/hosted/hosted-servers.ts', 'apps/server/src/store/servers/servers.ts'];
    const parsers = sources.filter(
      ({ path, text }) => /JSON\.parse\([^;]*as ServerConfig/.test(text) && !short.includes(path),
    );
    const advice = 'A long configuration holds every other call while it is parsed: use `parseJsonInTurns`';
    assertNone(getPaths(parsers), advice);
  });

  it('has no test that a busy machine fails: limits of time are for `onTime`, free ports for `freePort`', () => {
    const luck =
      /(?:performance|Date)\.now\(\) - \w+ <|const (\w+) = await startListener\(\);\s+(?:\w+ = \1\.port;\s+)?await \1\.close/;
    assertNone(
      testFiles().filter((file) => luck.test(readFileSync(join(root, file), 'utf8'))),
      'Check the time with `onTime`, and take the port from `freePort`',
    );
  });

  it('[find A2] has one place for each function of JavaScript whose time grows with the square of a text', () => {
    // They read what an operator wrote.
    const settingReaders = ['apps/server/src/setting-addresses.ts', 'apps/server/src/store/engine/postgres-url.ts'];
    const homes: [RegExp, string[]][] = [
      [/\.normalize\(|localeCompare|Intl\.Collator/, ['packages/tool-config/src/normalized-text.ts']],
      [/URL\.(?:parse|canParse)\b/, ['packages/tool-config/src/http/read-url.ts', ...settingReaders]],
      [/domainTo(?:ASCII|Unicode)\(/, ['packages/safe-http/src/host-name.ts']],
    ];
    // They read what their own person wrote.
    const own = /^(?:apps\/cli|apps\/dashboard|packages\/mcp-doctor|apps\/server\/src\/local)\//;
    for (const [pattern, home] of homes) {
      const elsewhere = sources.filter(
        ({ path, text }) => pattern.test(text) && !home.includes(path) && !own.test(path),
      );
      assertNone(getPaths(elsewhere), `Call what ${home.join(', ')} has for ${pattern}, which bounds the text`);
    }
  });

  it('has files of at most 500 lines, with names that say what is inside', () => {
    const paths = getPaths(sources);
    const long = sources.filter(({ text }) => text.split('\n').length > 501);
    assertNone(getPaths(long), 'Look for the second idea in the file, or for what it can do without');
    const vague = /(^|[/-])(utils?|helpers?|common|misc|manager|service|handler|impl)s?[.-]/;
    const vaguePaths = paths.filter((path) => vague.test(path));
    assertNone(vaguePaths, 'Name the file after what it does');
    const indexes = paths.filter((path) => /(^|\/)index\.tsx?$/.test(path));
    assertNone(
      indexes.filter((path) => path !== 'apps/server/src/operations/index.ts'),
      'Import from the file that has the thing; only the catalogue of operations is an index',
    );
  });

  it('uses standard terms, and comments that begin with a verb or a noun', () => {
    const words =
      /\b(?:strangers?|surroundings|nobody|whoever|meanwhile|anew|by heart|for good|goes? on to|beside|unasked|farewell|spoilt|handed out|crowded|doors?|sight|unspeakable|alone)\b/i;
    const openings =
      /^\s*(?:\/\*\*|\/\/) +(?:Whether|What|Which|That|Those|The same|How (?:many|much|long|often)|Whom|Whose|As (?:many|much|long))\b/;
    // Ordinary English in one comment.
    const exempt = /its surroundings/;
    const lines = sources.flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => {
        const isDialect = (words.test(line) && !exempt.test(line)) || openings.test(line);
        return isDialect ? [`${path}:${index + 1} ${line.trim()}`] : [];
      }),
    );
    assertNone(lines, 'Use the standard term, and begin with the verb or the noun');
  });

  it('loads at a start only the modules that calls need', () => {
    const loaded = loadedWith('apps/server/src/process/serve.ts');
    assert.ok(loaded.has('apps/server/src/gateway/call/call-tool.ts') && loaded.size > 100, String(loaded.size));
    const rare =
      /^(?:apps\/server\/src\/(app\/web|operations\/index|manage\/management-server|store\/engine\/postgres\.)|packages\/(openapi-to-tools\/src\/plan\/|mcp-doctor\/src\/examine))/;
    assertNone(
      [...loaded].filter((path) => rare.test(path)),
      'Load with `import()` what a service needs only later, or import only its types',
    );
    const entry = 'apps/server/src/command-line.ts';
    assertNone(
      [...loadedWith('apps/cli/src/main.ts')].filter(
        (path) => !path.startsWith('apps/cli/') && path !== entry && !loaded.has(path),
      ),
      'Load with `import()` what `toolhost serve` does not need',
    );
  });

  it('keeps the service out of commands that do not run it', () => {
    const loaded = loadedWith('apps/cli/src/program.ts');
    assert.ok(loaded.has('apps/server/src/command-line.ts') && loaded.size > 100, String(loaded.size));
    const service = /^apps\/server\/src\/(?:app|edge|gateway|local|manage|oauth|process|telemetry|threads)\//;
    assertNone(
      [...loaded].filter((path) => service.test(path)),
      'Load it with `import()` when its command runs',
    );
  });
});
