import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Markdown, Token } from '@11ty/eleventy';
import { transformWithOxc } from 'vite';
import { createSlugs } from './headings.ts';
import { getText } from './markdown.ts';
import type { Page } from './pages.ts';
import { makeIndex, type SearchIndex, type SectionText } from './search.ts';

/** Reference pages, and pages for contributors. */
const reference = /^docs\/(?:reference|contributing)\/|^bench\/|^(?:ARCHITECTURE|CHANGELOG|CONTRIBUTING)\.md$/;

/** Page with a table of tasks. */
const tablePath = 'docs/pages.md';

/** Collects the tasks of each page, by path: the first cells of the table rows that link to it. */
function collectTasks(table: string): Map<string, string> {
  const tasks = new Map<string, string>();
  for (const [, task = '', links = ''] of table.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)) {
    for (const [, href = ''] of links.matchAll(/\]\(([^)#]+)/g)) {
      const path = join(dirname(tablePath), href);
      tasks.set(path, `${tasks.get(path) ?? ''} ${task}`);
    }
  }
  return tasks;
}

function collectSections(markdown: Markdown, page: Page, tasks: string): SectionText[] {
  const toSlug = createSlugs();
  const sections: SectionText[] = [];
  const tokens = markdown.parse(page.text, {});
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const heading = getText(tokens[index + 1]);
      const anchor = toSlug(heading);
      const isFirst = sections.length === 0;
      sections.push({
        ...{
          href: isFirst ? page.target : `${page.target}#${anchor}`,
          page: page.title,
          heading,
          excerpt: '',
          text: '',
        },
        ...{ tasks: isFirst ? tasks : '', isReference: reference.test(page.source) },
      });
    } else if (tokens[index - 1]?.type !== 'heading_open') {
      const section = sections.at(-1);
      if (section) section.text = `${section.text} ${extractWords(token)}`.trim();
    }
  }
  return sections;
}

const extractWords = (token: Token) =>
  (token.type === 'fence' ? token.content : getText(token)).replaceAll(/\s+/g, ' ').trim();

/** Builds the index of all pages. */
export function buildIndex(markdown: Markdown, pages: readonly Page[]): SearchIndex {
  const tasks = collectTasks(pages.find(({ source }) => source === tablePath)?.text ?? '');
  return makeIndex(pages.flatMap((page) => collectSections(markdown, page, tasks.get(page.source) ?? '')));
}

/** Returns the search code for browsers. */
export async function searchScript(): Promise<string> {
  const file = join(import.meta.dirname, 'search.ts');
  return (await transformWithOxc(readFileSync(file, 'utf8'), file, { sourcemap: false })).code;
}
