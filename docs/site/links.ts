import { existsSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path/posix';
import { type Page, root } from './pages.ts';

/** Resolves links between pages for the site. */
export type Links = {
  /** Resolves a link; returns undefined for a source file, which the site does not contain. */
  resolve: (page: Page, href: string) => string | undefined;
  /** Files that pages link to or show, by their path on the site. */
  files: Map<string, string>;
  /** Messages about dead links. */
  deadLinks: string[];
};

/** Files of the repository that are published unchanged. */
const published =
  /^(?:docs|examples)\/[\w./-]+\.(?:ya?ml|json|png|svg)$|^deploy\/(?:proxies|backup)\/[\w.-]+$|^LICENSE$/;

export function createLinks(pages: readonly Page[], getAnchors: (page: Page) => ReadonlySet<string>): Links {
  const bySource = new Map(pages.map((page) => [page.source, page]));
  const files = new Map<string, string>();
  const deadLinks: string[] = [];
  return {
    files,
    deadLinks,
    resolve(page, href) {
      if (/^[a-z][a-z+.-]*:/i.test(href)) return href;
      const [path = '', anchor] = href.split('#', 2);
      const source = path === '' ? page.source : normalize(join(dirname(page.source), path)).replace(/\/$/, '');
      const target = bySource.get(source) ?? bySource.get(join(source, 'README.md'));
      const fragment = anchor === undefined ? '' : `#${anchor}`;
      if (target) {
        if (anchor !== undefined && !getAnchors(target).has(anchor))
          deadLinks.push(`${page.source}: ${href}: ${target.source} has no such heading`);
        return relative(dirname(page.target), target.target) + fragment;
      }
      if (!existsSync(join(root, source))) {
        deadLinks.push(`${page.source}: ${href}: there is no such file`);
        return undefined;
      }
      if (!published.test(source)) return undefined;
      const file = source === 'LICENSE' ? 'license.txt' : source.replace(/^docs\//, '');
      files.set(file, source);
      return relative(dirname(page.target), file);
    },
  };
}
