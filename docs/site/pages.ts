import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { navigation } from './navigation.ts';

export const root = join(import.meta.dirname, '..', '..');

export type Page = {
  /** Path in the repository. */
  source: string;
  /** Path on the site. */
  target: string;
  title: string;
  /** First sentence, shown in link previews. */
  summary: string;
  text: string;
};

export type Chapter = { title: string; pages: readonly Page[] };

/**
 * Maps a source to its path on the site: `docs/operations/backup.md` to `operations/backup.html`, a README to the index
 * of its folder.
 */
function toSitePath(source: string): string {
  const path = source
    .replace(/^docs\//, '')
    .replace(/\.md$/, '.html')
    .toLowerCase();
  return path.replace(/readme\.html$/, 'index.html');
}

function readPage(source: string): Page {
  const text = readFileSync(join(root, source), 'utf8');
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${source}: a page begins with a line "# Title"`);
  return { source, target: toSitePath(source), title: title.replaceAll('`', ''), summary: extractSummary(text), text };
}

/** Extracts the first sentence of a page as plain text. */
function extractSummary(text: string): string {
  const paragraph = text.split('\n').find((line) => /^[A-Z`[]/.test(line)) ?? '';
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '');
  return /^.*?[.:](?= |$)/.exec(plain)?.[0] ?? plain;
}

/** Reads all pages in navigation order. @throws Error for a listed page that does not exist */
export function readChapters(): Chapter[] {
  const listed = new Set(navigation.flatMap(({ pages }) => pages));
  const found = new Set(globSync(['*.md', 'docs/**/*.md', 'examples/*/*.md', 'bench/*.md'], { cwd: root }));
  const missing = [...listed].filter((source) => !found.has(source));
  if (missing.length > 0) throw new Error(`${missing.join(', ')}: no such page; correct docs/site/navigation.ts`);
  return navigation.map(({ title, folder, pages }) => {
    const others = folder === undefined ? [] : globSync(`${folder}/*.md`, { cwd: root }).toSorted();
    const all = [...pages, ...others.filter((source) => !listed.has(source))];
    return { title, pages: all.map(readPage) };
  });
}
