import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { root, testFiles } from './files.ts';

/** A file of the sources: its path below its root, its text, and the files of the sources that it imports, for types too. */
type Source = { path: string; text: string; imports: string[] };

const src = join(root, 'src');
const web = join(root, 'web', 'src');

function sourcesOf(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const file = join(folder, path);
      const text = readFileSync(file, 'utf8');
      const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map((match) =>
        relative(folder, resolve(dirname(file), match[1] as string)),
      );
      return { path, text, imports: imports.filter((target) => !target.startsWith('..')) };
    });
}

const service = sourcesOf(src);
const dashboard = sourcesOf(web);

/** Files that every folder but `domain` and `outbound` may import. They import nothing of ours but one another. */
const leaves = ['errors.ts', 'routes.ts', 'log.ts', 'version.ts', 'thread-priority.ts', 'give-back-memory.ts'];
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

function graphOf(sources: readonly Source[], nameOf: (path: string) => string): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    const from = nameOf(path);
    for (const to of imports.map(nameOf)) if (to !== from) graph.set(from, (graph.get(from) ?? new Set()).add(to));
  }
  return graph;
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
  const { text = '' } = service.find((source) => source.path === path) ?? {};
  for (const [, names = '', target = ''] of text.matchAll(
    /^(?:import|export)\s(?!type\s)([^;']*?)from '(\.[^']+)'/gm,
  )) {
    const isOfTypes = names.trim().startsWith('{') && !/[{,]\s*(?!type\s)\w/.test(names);
    if (!isOfTypes) loadedWith(join(dirname(path), target), loaded);
  }
  return loaded;
}

describe('the pages', () => {
  const pages = writtenPages();

  it('name and link only files that exist', () => {
    const missing = pages.flatMap(({ page, links, paths }) => [
      ...links.filter(({ file }) => !existsSync(join(root, file))).map(({ file }) => `${page}: ${file}`),
      ...paths.filter((path) => !isFound(path, page)).map((path) => `${page}: ${path}`),
    ]);
    assert.deepEqual(missing, []);
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
    assert.deepEqual(wrong, []);
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
    assert.deepEqual(faults, []);
  });

  it('has no circle of imports, of types neither', () => {
    assert.equal(circleOf(graphOf(service, (path) => path)), undefined);
    assert.equal(circleOf(graphOf(dashboard, (path) => path)), undefined);
  });

  it('has no circle of folders that lie side by side', () => {
    const nested = service.filter(({ path }) => dirname(path).includes('/'));
    for (const top of new Set(nested.map(({ path }) => topOf(path)))) {
      // What lies in the folder above belongs to all of them.
      const beside = nested
        .filter(({ path }) => topOf(path) === top)
        .map((source) => ({
          ...source,
          imports: source.imports.filter((target) => dirname(target).startsWith(`${top}/`)),
        }));
      assert.equal(circleOf(graphOf(beside, dirname)), undefined);
    }
  });

  it('exports each name once', () => {
    const homes = new Map<string, string[]>();
    for (const { path, text } of service) {
      for (const [, name = ''] of text.matchAll(/^export (?:async )?(?:function\*?|const|class|type) (\w+)/gm))
        homes.set(name, [...(homes.get(name) ?? []), path]);
    }
    assert.deepEqual(
      [...homes].filter(([, paths]) => paths.length > 1),
      [],
    );
  });

  it('[find B1] decides nothing by the clock of a process', () => {
    // `processClocks` feeds the database clock; the identity provider of local mode lives and dies with its process.
    const own = ['app/surroundings.ts', 'local/identity.ts'];
    const readers = service.filter(({ text }) => /\bDate\.now\b|new Date\(\)/.test(text)).map(({ path }) => path);
    assert.deepEqual(readers.toSorted(), own);
  });

  it('[find A1] parses configurations in several turns, but for those that are known to be short', () => {
    const short = ['gateway/hosted/server-reader.ts', 'store/servers/servers.ts'];
    const parsers = service
      .filter(({ text }) => /JSON\.parse\([^;]*as ServerConfig/.test(text))
      .map(({ path }) => path);
    assert.deepEqual(parsers.toSorted(), short);
  });

  it('has no test that a busy machine fails: limits of time are for `onTime`, free ports for `freePort`', () => {
    const luck =
      /(?:performance|Date)\.now\(\) - \w+ <|const (\w+) = await startListener\(\);\s+(?:\w+ = \1\.port;\s+)?await \1\.close/;
    assert.deepEqual(
      testFiles().filter((file) => luck.test(readFileSync(join(root, 'test', file), 'utf8'))),
      [],
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
      assert.deepEqual(
        elsewhere.map(({ path }) => path),
        [],
        String(pattern),
      );
    }
  });

  it('has small files, in small folders, with names that say what is inside', () => {
    const all = [...service, ...dashboard];
    const long = all.filter(({ text }) => text.split('\n').length > 301).map(({ path }) => path);
    const sizes = Map.groupBy(all, ({ path }) => dirname(path));
    const full = [...sizes].filter(([, { length }]) => length > 17).map(([folder]) => folder);
    const vague = all
      .filter(({ path }) => /(^|[/-])(utils?|helpers?|common|misc|manager|service|handler|impl)s?[.-]/.test(path))
      .map(({ path }) => path);
    const barrels = all.filter(({ path }) => /(^|\/)index\.tsx?$/.test(path)).map(({ path }) => path);
    assert.deepEqual(
      { long, full, vague, barrels },
      { long: [], full: [], vague: [], barrels: ['operations/index.ts'] },
    );
  });

  it('avoids words that the glossary replaces', () => {
    const replaced = /\b(?:doors?|sight|unspeakable|alone)\b/i;
    const lines = [...service, ...dashboard].flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, index) => (replaced.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
    );
    assert.deepEqual(lines, []);
  });

  it('are loaded at a start only as far as calls need them', () => {
    const loaded = loadedWith('process/serve.ts');
    assert.ok(loaded.has('gateway/call/call-tool.ts') && loaded.size > 200, String(loaded.size));
    const rare =
      /^(app\/web|operations\/index|manage\/management-server|import\/plan\/|doctor\/examine|store\/engine\/postgres\.)/;
    assert.deepEqual(
      [...loaded].filter((path) => rare.test(path)),
      [],
    );
  });
});
