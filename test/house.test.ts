import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { quickFiles, testFiles } from './files.ts';

const src = resolve(import.meta.dirname, '..', 'src');

/** Who may import whom. Everybody may import the leaves; the root, app/ and local/ compose and may import everything. */
const leaves = [
  'errors.ts',
  'routes.ts',
  'page.ts',
  'log.ts',
  'version.ts',
  'read-body.ts',
  'http.ts',
  'incoming.ts',
  'thread-priority.ts',
];
const table: Record<string, readonly string[]> = {
  domain: [],
  outbound: [],
  store: ['domain'],
  gateway: ['domain', 'store', 'outbound'],
  oauth: ['domain', 'store', 'outbound'],
  operations: ['domain', 'store', 'outbound'],
  manage: ['domain', 'store', 'operations'],
  telemetry: ['domain'],
  threads: ['domain', 'gateway', 'operations'],
  edge: ['domain', 'manage', ''],
  cli: ['domain', 'operations', 'app', 'process', ''],
};
const composing = new Set(['', 'app', 'local', 'process']);
/** The pure parts know nothing of ours but the errors. */
const strict = new Set(['domain', 'outbound']);

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : path.endsWith('.ts') ? [path] : [];
  });
}

const files = filesBelow(src);
const importsOf = (file: string) =>
  [...readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map((match) =>
    resolve(dirname(file), match[1] as string),
  );

/** The folder of a file below src, or '' for a file at the root. */
const folderOf = (file: string) => {
  const parts = relative(src, file).split('/');
  return parts.length > 1 ? (parts[0] as string) : '';
};

describe('the house', () => {
  it('is imported as its table says', () => {
    const faults = files.flatMap((file) => {
      const from = folderOf(file);
      if (composing.has(from)) return [];
      const allowed = table[from];
      if (!allowed) return [`${relative(src, file)}: the folder ${from} is not in the table`];
      return importsOf(file)
        .filter((target) => target.startsWith(src))
        .filter((target) => {
          const to = folderOf(target);
          const name = relative(src, target);
          if (to === from || (to !== '' && allowed.includes(to))) return false;
          if (to === '' && (strict.has(from) ? name === 'errors.ts' : leaves.includes(name) || allowed.includes('')))
            return false;
          return true;
        })
        .map((target) => `${relative(src, file)} imports ${relative(src, target)}`);
    });
    assert.deepEqual(faults, []);
  });

  it('has no import cycles', () => {
    const open = new Set<string>();
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (file: string, path: string[]): void => {
      if (open.has(file)) {
        cycles.push([...path.slice(path.indexOf(file)), file].map((f) => relative(src, f)).join(' → '));
        return;
      }
      if (done.has(file) || !files.includes(file)) return;
      open.add(file);
      for (const next of importsOf(file).filter((target) => !isTypeOnly(file, target))) visit(next, [...path, file]);
      open.delete(file);
      done.add(file);
    };
    for (const file of files) visit(file, []);
    assert.deepEqual(cycles, []);
  });

  it('[find B1] judges nothing by the clock of a process', () => {
    // `processClocks` feeds the database clock; the identity provider of local mode lives and dies with its process.
    const own = ['app/surroundings.ts', 'local/identity.ts'];
    const readers = files
      .filter((file) => /\bDate\.now\b|new Date\(\)/.test(readFileSync(file, 'utf8')))
      .map((file) => relative(src, file));
    assert.deepEqual(readers.toSorted(), own);
  });

  it('has every file of the quick set of tests', () => {
    const all = new Set(testFiles());
    assert.deepEqual(
      quickFiles.filter((file) => !all.has(file)),
      [],
    );
  });

  it('has small files with names that say what is inside', () => {
    const long = files
      .filter((file) => readFileSync(file, 'utf8').split('\n').length > 301)
      .map((file) => relative(src, file));
    const vague = files.filter((file) =>
      /(^|[/-])(utils?|helpers?|common|misc|manager|service|handler|impl)s?[.-]/.test(relative(src, file)),
    );
    const barrels = files.filter((file) => file.endsWith('/index.ts')).map((file) => relative(src, file));
    assert.deepEqual({ long, vague, barrels }, { long: [], vague: [], barrels: ['operations/index.ts'] });
  });
});

/** Types vanish before the program runs, so they cannot make it depend on itself. */
function isTypeOnly(file: string, target: string): boolean {
  const name = relative(dirname(file), target);
  const specifier = name.startsWith('.') ? name : `./${name}`;
  const text = readFileSync(file, 'utf8');
  const imports = [...text.matchAll(/import\s+(type\s+)?([^;]*?)\s+from\s+'([^']+)'/g)].filter(
    (match) => match[3] === specifier,
  );
  return imports.length > 0 && imports.every((match) => match[1] !== undefined);
}
