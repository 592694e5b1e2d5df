import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { relative } from 'node:path/posix';
import { Eleventy, type Markdown } from '@11ty/eleventy';
import { workflowRepository } from '../../build/package/repository.ts';
import { createLinks } from './links.ts';
import { amendMarkdown, getHeadings } from './markdown.ts';
import { type Chapter, type Page, readChapters, root } from './pages.ts';
import { buildIndex, searchScript } from './search-index.ts';

const layouts = join(import.meta.dirname, 'layout');
const assets = join(import.meta.dirname, 'assets');

/** URLs of the published site and its sources, without a trailing slash, for absolute links. */
export type Published = { site?: string | undefined; repository?: string | undefined };

/** Builds the site in a folder, replacing its contents. @throws Error that lists every dead link */
export async function buildSite(folder: string, published: Published = {}): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const chapters = readChapters();
  const pages = chapters.flatMap((chapter) => chapter.pages);
  const bySource = new Map(pages.map((page) => [page.source, page]));
  let markdown: Markdown | undefined;
  const anchors = new Map<Page, ReadonlySet<string>>();
  const getAnchors = (page: Page) => {
    const existing = anchors.get(page) ?? new Set(markdown ? getHeadings(markdown, page).map(({ slug }) => slug) : []);
    anchors.set(page, existing);
    return existing;
  };
  const links = createLinks(pages, getAnchors);
  const generator = new Eleventy(layouts, folder, {
    quietMode: true,
    config(configuration) {
      configuration.amendLibrary('md', (library) => {
        markdown = library;
        amendMarkdown(library, bySource, links);
      });
      configuration.addTransform('wide', readable);
      for (const page of pages)
        configuration.addTemplate(`${page.target}.md`, page.text, toPageData(page, chapters, published));
      return { markdownTemplateEngine: false, templateFormats: ['md'] };
    },
  });
  await generator.write();
  if (links.deadLinks.length > 0)
    throw new Error(`dead links:\n${[...new Set(links.deadLinks)].toSorted().join('\n')}`);
  for (const [target, source] of links.files) copyTo(join(root, source), join(folder, target));
  cpSync(assets, join(folder, 'assets'), { recursive: true });
  if (!markdown) throw new Error('no page was read');
  writeFileSync(join(folder, 'assets', 'search-index.json'), JSON.stringify(buildIndex(markdown, pages)));
  writeFileSync(join(folder, 'assets', 'search.js'), await searchScript());
}

/** Adds a table of contents below the title. Makes wide tables and code scrollable, also with the keyboard. */
function readable(html: string): string {
  const headings = [...html.matchAll(/<h2 id="([^"]+)"[^>]*>(.*?)<\/h2>/g)];
  const links = headings.map(
    ([, anchor, text]) => `<li><a href="#${anchor}">${text?.replaceAll(/<[^>]+>/g, '')}</a></li>`,
  );
  const contents = `<ul class="contents" aria-label="On this page">${links.join('')}</ul>`;
  return html
    .replace('</h1>', links.length > 2 ? `</h1>\n${contents}` : '</h1>')
    .replaceAll('<table>', '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">');
}

function toPageData(page: Page, chapters: readonly Chapter[], { site, repository }: Published): object {
  const to = (target: string) => relative(dirname(page.target), target) || '.';
  const all = chapters.flatMap(({ pages }) => pages);
  const beside = (step: number) => {
    const neighbor = all[all.indexOf(page) + step];
    return neighbor && { title: neighbor.title, href: to(neighbor.target) };
  };
  return {
    source: page.source,
    pageTitle: page.title,
    summary: page.summary,
    permalink: page.target,
    layout: 'page.njk',
    // Plain Markdown, because a template would interpret `{{NAME}}`.
    templateEngineOverride: 'md',
    root: to('.') === '.' ? '.' : to('.'),
    home: to('index.html'),
    address: site && `${site}/${page.target}`,
    image: site && `${site}/images/front-light.png`,
    repository,
    previous: beside(-1),
    next: beside(1),
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

if (import.meta.main) {
  const folder = join(root, 'site');
  await buildSite(folder, { site: process.env.SITE_URL, repository: workflowRepository(process.env) });
  process.stdout.write(`${folder}\n`);
}
