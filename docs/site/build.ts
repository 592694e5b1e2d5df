import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { relative } from 'node:path/posix';
import { Eleventy, type Markdown } from '@11ty/eleventy';
import { createIndex, close as endSearch } from 'pagefind';
import { createLinks } from './links.ts';
import { amendMarkdown, headingsOf } from './markdown.ts';
import { type Chapter, type Page, readChapters, root } from './pages.ts';

const layouts = join(import.meta.dirname, 'layout');
const assets = join(import.meta.dirname, 'assets');

/** Writes the site into a folder, which is made anew. @throws Error that lists every dead link */
export async function buildSite(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const chapters = readChapters();
  const pages = chapters.flatMap((chapter) => chapter.pages);
  const bySource = new Map(pages.map((page) => [page.source, page]));
  let markdown: Markdown | undefined;
  const anchors = new Map<Page, ReadonlySet<string>>();
  const anchorsOf = (page: Page) => {
    const known = anchors.get(page) ?? new Set(markdown ? headingsOf(markdown, page).map(({ slug }) => slug) : []);
    anchors.set(page, known);
    return known;
  };
  const links = createLinks(pages, anchorsOf);
  const generator = new Eleventy(layouts, folder, {
    quietMode: true,
    config(configuration) {
      configuration.amendLibrary('md', (library) => {
        markdown = library;
        amendMarkdown(library, bySource, links);
      });
      // Wide tables and code scroll by themselves, also with the keyboard.
      configuration.addTransform('wide', (html) =>
        html
          .replaceAll('<table>', '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>')
          .replaceAll('</table>', '</table></div>')
          .replaceAll('<pre>', '<pre tabindex="0">'),
      );
      for (const page of pages) configuration.addTemplate(`${page.target}.md`, page.text, dataOf(page, chapters));
      return { markdownTemplateEngine: false, templateFormats: ['md'] };
    },
  });
  await generator.write();
  if (links.faults.length > 0) throw new Error(`dead links:\n${[...new Set(links.faults)].toSorted().join('\n')}`);
  for (const [target, source] of links.files) copyTo(join(root, source), join(folder, target));
  cpSync(assets, join(folder, 'assets'), { recursive: true });
  await indexSearch(folder);
}

function dataOf(page: Page, chapters: readonly Chapter[]): object {
  const to = (target: string) => relative(dirname(page.target), target) || '.';
  return {
    source: page.source,
    pageTitle: page.title,
    permalink: page.target,
    layout: 'page.njk',
    root: to('.') === '.' ? '.' : to('.'),
    home: to('index.html'),
    chapters: chapters.map(({ title, pages }) => ({
      title,
      pages: pages.map((one) => ({ title: one.title, href: to(one.target), isCurrent: one === page })),
    })),
  };
}

function copyTo(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function writeTo(path: string, content: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/**
 * Makes the search of the pages in a folder. Pagefind's own `writeFiles` answers before it has written all bytes, and `close`
 * then leaves files that are cut off (Pagefind, issue 1271).
 */
async function indexSearch(folder: string): Promise<void> {
  try {
    const { index, errors } = await createIndex({});
    if (!index) throw new Error(errors.join('\n'));
    const read = await index.addDirectory({ path: folder });
    const { files, errors: unmade } = await index.getFiles();
    const failed = [...read.errors, ...unmade];
    if (!files || failed.length > 0) throw new Error(failed.join('\n'));
    for (const { path, content } of files) writeTo(join(folder, 'pagefind', path), content);
  } finally {
    await endSearch();
  }
}

if (import.meta.main) {
  const folder = join(root, 'site');
  await buildSite(folder);
  process.stdout.write(`${folder}\n`);
}
