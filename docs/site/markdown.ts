import type { Markdown, Token } from '@11ty/eleventy';
import { createSlugs } from './headings.ts';
import type { Links } from './links.ts';
import type { Page } from './pages.ts';

export type Heading = { level: number; slug: string; text: string };

export function getText(token: Token | undefined): string {
  const parts = token?.children?.filter(({ type }) => type === 'text' || type === 'code_inline') ?? [];
  return parts.map(({ content }) => content).join('');
}

/** Adds an anchor to each heading, and returns all of them. */
function nameHeadings(tokens: readonly Token[]): Heading[] {
  const toSlug = createSlugs();
  return tokens.flatMap((token, index) => {
    if (token.type !== 'heading_open') return [];
    const text = getText(tokens[index + 1]);
    const slug = toSlug(text);
    token.attrSet('id', slug);
    return [{ level: Number(token.tag.slice(1)), slug, text }];
  });
}

const isComment = ({ type, content }: Token) => type === 'html_block' && /^\s*<!--/.test(content);

/** Configures Eleventy's Markdown to add heading anchors and to resolve repository links. */
export function amendMarkdown(markdown: Markdown, pages: ReadonlyMap<string, Page>, links: Links): void {
  markdown.set({ html: true });
  markdown.core.ruler.push('site', ({ tokens, env }) => {
    const page = pages.get(env.source ?? '');
    if (!page) return;
    // Comments are only for editors of a page and for tests.
    tokens.splice(0, tokens.length, ...tokens.filter((token) => !isComment(token)));
    nameHeadings(tokens);
    for (const token of tokens)
      if (token.type === 'html_block') token.content = resolvePictures(token.content, page, links);
    for (const { children } of tokens) children?.splice(0, children.length, ...linked(children, page, links));
  });
}

export function getHeadings(markdown: Markdown, page: Page): Heading[] {
  return nameHeadings(markdown.parse(page.text, {}));
}

/** Rewrites the sources of a picture that has another one for dark mode, which only HTML can express. */
function resolvePictures(html: string, page: Page, links: Links): string {
  return html.replaceAll(/(?<= src(?:set)?=")[^"]+/g, (source) => links.resolve(page, source) ?? '');
}

/** Rewrites the links in inline tokens. A link without a target on the site is replaced with its text. */
function linked(tokens: readonly Token[], page: Page, links: Links): Token[] {
  let isDropped = false;
  return tokens.filter((token) => {
    if (token.type === 'image') token.attrSet('src', links.resolve(page, token.attrGet('src') ?? '') ?? '');
    if (token.type === 'link_open') {
      const target = links.resolve(page, token.attrGet('href') ?? '');
      isDropped = target === undefined;
      if (target !== undefined) token.attrSet('href', target);
      return !isDropped;
    }
    return token.type !== 'link_close' || !isDropped;
  });
}
