import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { root, testFiles } from './files.ts';

/**
 * A file of the sources: its path below its root, its text, and the files of the sources that it imports: all of them,
 * those that it imports for more than their types, and of these the ones that are evaluated before it.
 */
type Source = { path: string; text: string; imports: string[]; values: string[]; evaluated: string[] };

const src = join(root, 'src');
const web = join(root, 'web', 'src');

function sourcesOf(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const file = join(folder, path);
      const text = readFileSync(file, 'utf8');
      const inFolder = (targets: (string | undefined)[]) =>
        targets
          .map((target = '') => relative(folder, resolve(dirname(file), target)))
          .filter((target) => !target.startsWith('..'));
      const lazy = [...text.matchAll(/import\(\s*'(\.[^']+)'/g)].map(([, target]) => target);
      const statements = [...text.matchAll(/^(?:import|export)\s([^;']*?)from '(\.[^']+)'/gm)];
      const ofValues = statements.filter(([, what = '']) => !isOfTypes(what)).map(([, , target]) => target);
      return {
        path,
        text,
        imports: inFolder([...statements.map(([, , target]) => target), ...lazy]),
        values: inFolder([...ofValues, ...lazy]),
        evaluated: inFolder(ofValues),
      };
    });
}

/** Whether an import takes only types, so that nothing is left of it when the code runs. */
function isOfTypes(what: string): boolean {
  return what.startsWith('type ') || (what.startsWith('{') && !/[{,]\s*(?!type\s)\w/.test(what));
}

const service = sourcesOf(src);
const dashboard = sourcesOf(web);

/** Files that every folder but `domain` and `outbound` may import. They import nothing of ours but one another. */
const leaves = ['errors.ts', 'routes.ts', 'log.ts', 'version.ts', 'thread-priority.ts'];
const settings = ['config.ts', 'variables.ts', 'master-keys.ts', 'setting-addresses.ts'];

/** Which folders each folder may import besides itself. Those that are last know most. */
const mayImport: Record<string, readonly string[]> = {
  domain: [],
  outbound: [],
  http: ['domain'],
  import: ['domain'],
  store: ['domain'],
  telemetry: ['domain'],
  doctor: ['domain'],
  gateway: ['domain', 'store', 'outbound', 'http'],
  oauth: ['domain', 'store', 'outbound', 'http'],
  operations: ['domain', 'store', 'outbound', 'doctor', 'import'],
  manage: ['domain', 'store', 'operations', 'http'],
  threads: ['domain', 'gateway', 'operations', 'outbound'],
  edge: ['domain', 'http', ...settings],
  local: ['domain', 'store', 'operations', 'manage', 'http', ...settings],
  app: [
    ...['domain', 'store', 'telemetry', 'gateway', 'oauth', 'operations', 'manage', 'threads', 'edge', 'outbound'],
    ...['local', ...settings],
  ],
  process: ['app', 'local', 'edge', 'manage', 'outbound', 'telemetry', 'http', ...settings],
  cli: ['domain', 'doctor', 'import', 'operations', 'app', 'process', ...settings],
};
/** The pure folders know nothing of ours but the errors. */
const pure = ['domain', 'outbound'];

/** The folder of a file at the top, or the file itself where it is in none. */
const topOf = (path: string) => path.split('/')[0] as string;

function isAllowed(from: string, to: string): boolean {
  if (from === to || mayImport[from]?.includes(to)) return true;
  return pure.includes(from) ? to === 'errors.ts' : leaves.includes(to);
}

/** The first circle that is found when what each name leads to is followed. */
function circleOf(next: ReadonlyMap<string, ReadonlySet<string>>): string | undefined {
  const open: string[] = [];
  const done = new Set<string>();
  const visit = (name: string): string | undefined => {
    if (open.includes(name)) return [...open.slice(open.indexOf(name)), name].join(' → ');
    if (done.has(name)) return undefined;
    open.push(name);
    for (const to of next.get(name) ?? []) {
      const found = visit(to);
      if (found) return found;
    }
    open.pop();
    done.add(name);
    return undefined;
  };
  for (const name of next.keys()) {
    const found = visit(name);
    if (found) return found;
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

/** What a file leads to, over any number of imports. */
function reachedFrom(file: string, graph: ReadonlyMap<string, ReadonlySet<string>>, reached = new Set<string>()) {
  for (const next of graph.get(file) ?? []) {
    if (reached.has(next)) continue;
    reached.add(next);
    reachedFrom(next, graph, reached);
  }
  return reached;
}

/** The imports of another folder, for types too, that close a circle. */
function circlesOfFolders(sources: readonly Source[]): string[] {
  const graph = graphOf(sources.map(({ path, imports }) => ({ from: path, to: imports })));
  return sources.flatMap(({ path, imports }) =>
    imports
      .filter((target) => dirname(target) !== dirname(path) && reachedFrom(target, graph).has(path))
      .map((target) => `${path} imports ${target}, which leads back to it`),
  );
}

/** Fails with what is wrong, and what to do about it. */
function assertNone(faults: readonly (string | undefined)[], advice: string): void {
  const found = faults.filter((fault) => fault !== undefined);
  assert.ok(found.length === 0, `${advice}:\n  ${found.join('\n  ')}`);
}

/** The pages that are written by hand, with what they link to and the paths that they name in code. */
function writtenPages() {
  const names = globSync('{*,docs/*,docs/operations/*,bench/*}.md', { cwd: root });
  return names.map((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    const links = [...text.matchAll(/\[([^\]]*)\]\(([\w./-]+\.\w+)(?:#[\w-]+)?\)/g)].map(
      ([, label = '', target = '']) => ({ label, file: join(dirname(page), target) }),
    );
    const paths = [...text.matchAll(/`([\w.*-]+\/[\w./*-]*)`/g)].map(([, path = '']) => path).filter(isPath);
    return { page, links, paths };
  });
}

const isPath = (text: string) => /^(src|test|web|docs|bench|examples|migrations)\/|\.(ts|tsx|md|sql|yml)$/.test(text);
/** Paths may also begin below the sources, or beside the page. */
const isFound = (path: string, page: string) =>
  ['', 'src', 'web/src', dirname(page)].some(
    (folder) => globSync(join(folder, path.replace('NNNN-name', '*')), { cwd: root }).length > 0,
  );

/** The files that are evaluated with one of the sources: those that it imports at its top for more than their types. */
function loadedWith(path: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const target of service.find((source) => source.path === path)?.evaluated ?? []) loadedWith(target, loaded);
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
    const tree = /```\n(src\/\n[\s\S]*?)```/.exec(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))?.[1] ?? '';
    const folders = [...tree.matchAll(/(?<=^|\s)([\w-]+)\/(?=\s)/g)].map(([, name]) => name as string);
    assert.ok(folders.length > 40);
    assertNone(
      folders.filter((name) => globSync([name, `src/**/${name}/`], { cwd: root }).length === 0),
      'These folders of the tree do not exist; name those that there are',
    );
  });

  it('link each function to the file that has it', () => {
    const named = pages
      .flatMap(({ page, links }) =>
        links.map(({ label, file }) => ({ page, file, name: /^`(\w+)`$/.exec(label)?.[1] })),
      )
      .filter(({ file }) => file.endsWith('.ts'));
    assert.ok(named.length > 50);
    const wrong = named.filter(
      ({ file, name }) =>
        !new RegExp(`(function|const|class|type) ${name}\\b`).test(readFileSync(join(root, file), 'utf8')),
    );
    assertNone(
      wrong.map(({ page, file, name }) => `${page}: ${name} is not in ${file}`),
      'Link the file that has the function now',
    );
  });
});

describe('the house', () => {
  it('is imported as its table says', () => {
    const faults = service.flatMap(({ path, imports }) => {
      const from = topOf(path);
      if (leaves.includes(from) || settings.includes(from)) return [];
      if (!(from in mayImport)) return [`${path}: the folder ${from} is not in the table`];
      return imports.filter((target) => !isAllowed(from, topOf(target))).map((target) => `${path} imports ${target}`);
    });
    assertNone(faults, 'Pass what is needed as an argument, or move it to a folder that the importing one may import');
  });

  it('has no circle of imports, but for types within one folder', () => {
    const circles = [service, dashboard].map((sources) =>
      circleOf(graphOf(sources.map(({ path, values }) => ({ from: path, to: values })))),
    );
    assertNone(circles, 'Merge files that need one another, or move what both need below them');
    assertNone(
      [service, dashboard].flatMap(circlesOfFolders),
      'Move the type to the folder that is imported by the other one',
    );
  });

  it('has no circle of folders that lie side by side', () => {
    const nested = service.filter(({ path }) => dirname(path).includes('/'));
    for (const top of new Set(nested.map(({ path }) => topOf(path)))) {
      // What lies in the folder above belongs to all of them.
      const beside = nested
        .filter(({ path }) => topOf(path) === top)
        .map(({ path, imports }) => ({
          from: dirname(path),
          to: imports.map((target) => dirname(target)).filter((folder) => folder.startsWith(`${top}/`)),
        }));
      assertNone(
        [circleOf(graphOf(beside))],
        'Move the file that is imported against the order into the folder that is imported',
      );
    }
  });

  it('exports each name once', () => {
    const homes = new Map<string, string[]>();
    for (const { path, text } of service) {
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
    const own = ['app/surroundings.ts', 'local/identity.ts'];
    const readers = service.filter(({ text }) => /\bDate\.now\b|new Date\(\)/.test(text)).map(({ path }) => path);
    assertNone(
      readers.filter((path) => !own.includes(path)),
      'Take `now` as an argument; it is the time of the database',
    );
  });

  it('[find A1] parses configurations in several turns, but for those that are known to be short', () => {
    const short = ['gateway/hosted/hosted-servers.ts', 'store/servers/servers.ts'];
    const parsers = service
      .filter(({ text }) => /JSON\.parse\([^;]*as ServerConfig/.test(text))
      .map(({ path }) => path);
    assertNone(
      parsers.filter((path) => !short.includes(path)),
      'A long configuration holds every other call while it is parsed: use `parseJsonInChunks`',
    );
  });

  it('has no test that a busy machine fails: limits of time are for `assertWithinDeadline`, free ports for `findFreePort`', () => {
    const luck =
      /(?:performance|Date)\.now\(\) - \w+ <|const (\w+) = await startListener\(\);\s+(?:\w+ = \1\.port;\s+)?await \1\.close/;
    assertNone(
      testFiles().filter((file) => luck.test(readFileSync(join(root, 'test', file), 'utf8'))),
      'Check the time with `assertWithinDeadline`, and take the port from `findFreePort`',
    );
  });

  it('[find A2] has one place for each function of JavaScript whose time grows with the square of a text', () => {
    const homes: [RegExp, string[]][] = [
      [/\.normalize\(|localeCompare|Intl\.Collator/, ['domain/normalised.ts']],
      // The command line and the settings of an operator read what their own person wrote.
      [
        /URL\.(?:parse|canParse)\b/,
        ['domain/http/read-url.ts', 'setting-addresses.ts', 'store/engine/postgres-url.ts'],
      ],
      [/domainTo(?:ASCII|Unicode)\(/, ['outbound/host-name.ts']],
    ];
    const own = /^(?:cli|doctor|local)\//;
    for (const [pattern, home] of homes) {
      const elsewhere = service.filter(
        ({ path, text }) => pattern.test(text) && !home.includes(path) && !own.test(path),
      );
      assertNone(
        elsewhere.map(({ path }) => path),
        `Call what ${home.join(', ')} has for ${pattern}, which bounds the text`,
      );
    }
  });

  it('has files of at most 500 lines, with names that say what is inside', () => {
    const all = [...service, ...dashboard];
    assertNone(
      all.filter(({ text }) => text.split('\n').length > 501).map(({ path }) => path),
      'Look for the second idea in the file, or for what it can do without',
    );
    assertNone(
      all
        .map(({ path }) => path)
        .filter((path) => /(^|[/-])(utils?|helpers?|common|misc|manager|service|handler|impl)s?[.-]/.test(path)),
      'Name the file after what it does',
    );
    assertNone(
      all.map(({ path }) => path).filter((path) => /(^|\/)index\.tsx?$/.test(path) && path !== 'operations/index.ts'),
      'Import from the file that has the thing; only the catalogue of operations is an index',
    );
  });

  it('avoids words that the glossary replaces', () => {
    const replaced = /\b(?:doors?|sight|unspeakable|alone)\b/i;
    const lines = [...service, ...dashboard].flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => (replaced.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
    );
    assertNone(lines, 'Use the word of the glossary in ARCHITECTURE.md');
  });

  it('are loaded at a start only as far as calls need them', () => {
    const loaded = loadedWith('process/serve.ts');
    assert.ok(loaded.has('gateway/call/call-tool.ts') && loaded.size > 100, String(loaded.size));
    const rare =
      /^(app\/web|operations\/index|manage\/management-server|import\/plan\/|doctor\/examine|store\/engine\/postgres\.)/;
    assertNone(
      [...loaded].filter((path) => rare.test(path)),
      'Load with `import()` what a service needs only later, or import only its types',
    );
  });
});
