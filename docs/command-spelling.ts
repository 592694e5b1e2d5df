/**
 * Switches the user pages from a checkout to the published package and image, and adds the README's badges. Run
 * `GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=OWNER/NAME node docs/command-spelling.ts` as part of the first
 * release.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { workflowRepository } from '../build/package/repository.ts';

const root = join(import.meta.dirname, '..');

/** Page that lists the commands for a checkout and for an installed package. */
const installation = 'docs/operations/installation.md';

/** Passages that apply until a version is published, and their replacements. */
export const passages: readonly (readonly [checkout: string, published: string])[] = [
  ['In a checkout of this repository, with Node 20 or newer and npm:', 'With Node 22, 24, or 26:'],
  ['npm ci && npm start', 'npx toolhost serve'],
  ['`npx toolhost serve` will follow; the npm package is not published yet.\n\n', ''],
  ['a checkout of this repository, Node 20 or newer, npm, and an API', 'Node 22, 24, or 26, and an API'],
  ['npm ci && npm run build\n', ''],
  ['`npm start` starts it again', '`npx toolhost serve` starts it again'],
  ['PORT=8090 npm start', 'PORT=8090 npx toolhost serve'],
  [' It requires the npm package, which is not published yet.', ''],
  ['**Status**: 0.1, not released yet;', '**Status**: 0.1;'],
  [
    'The package is not published yet. Until then, use `npm install --global` with the file that `npm pack` creates in a [checkout](#a-checkout).\n\n',
    '',
  ],
  [
    'sudo npm install --global toolhost@0.1.0     # not published yet: use the file from npm pack',
    'sudo npm install --global toolhost@0.1.0',
  ],
];

/** Pages to switch: user pages, except generated pages and those of examples. */
export const switchedPages: readonly string[] = [
  'README.md',
  ...globSync(['docs/*.md', 'docs/operations/*.md'], { cwd: root }).toSorted(),
];

/** Returns true once the changelog has a section for a version. */
export function isPublished(): boolean {
  return /^## \d+\.\d+\.\d+/m.test(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'));
}

/** Returns the text of a page after publication. */
export function published(page: string, text: string): string {
  const passage = passages.reduce((before, [checkout, after]) => before.replaceAll(checkout, after), text);
  return page === installation ? passage : passage.replaceAll(/(?<![\w/.])bin\/toolhost(?=[ `])/g, 'npx toolhost');
}

/** Returns the text of a page with the published image in place of a local build, and the README's badges. */
export function withRepository(text: string, repository: string): string {
  const image = `ghcr.io/${new URL(repository).pathname.slice(1).toLowerCase()}`;
  const workflow = `${repository}/actions/workflows/ci.yml`;
  const badges = [
    `[![CI](${workflow}/badge.svg)](${workflow})`,
    '[![Release](https://img.shields.io/npm/v/toolhost)](https://www.npmjs.com/package/toolhost)',
    '[![License](https://img.shields.io/npm/l/toolhost)](LICENSE)',
  ];
  return text
    .replace(/^# Toolhost\n\n(?=Toolhost turns)/, `# Toolhost\n\n${badges.join(' ')}\n\n`)
    .replaceAll(/docker build --tag toolhost:\S+ \. && (docker run [^`]*) toolhost(:[\d.]+)/g, `$1 ${image}$2`);
}

if (import.meta.main) {
  const repository = workflowRepository(process.env);
  if (!repository) throw new Error('The repository is unknown. Set GITHUB_SERVER_URL and GITHUB_REPOSITORY.');
  for (const page of switchedPages) {
    const file = join(root, page);
    writeFileSync(file, withRepository(published(page, readFileSync(file, 'utf8')), repository));
  }
}
