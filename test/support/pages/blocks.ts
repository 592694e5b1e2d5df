import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../files.ts';

/** Fenced code block of a page. */
export type Block = {
  page: string;
  /** Line of its fence, from 1. */
  line: number;
  language: string;
  text: string;
  /** Text of the HTML comment before it: `not run: reason`, or `first: commands` that prepare it. */
  note: string | undefined;
};

/** Returns the pages for users of the service, without generated pages and those for contributors. */
export function userPages(): string[] {
  return ['README.md', ...globSync(['docs/**/*.md', 'examples/*/README.md'], { cwd: root }).toSorted()].filter(
    (page) => !/^docs\/(?:reference|contributing)\//.test(page),
  );
}

const fencePattern = /^( *)```(\w*)\n([\s\S]*?)^\1```$/gm;
const commentPattern = /<!--\s*((?:(?!-->)[\s\S])*?)\s*-->\s*$/;

export function readBlocks(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(fencePattern)].map(({ index, 1: indent = '', 2: language = '', 3: body = '' }) => {
    const before = text.slice(0, index);
    return {
      page,
      line: before.split('\n').length,
      language,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      note: commentPattern.exec(before)?.[1],
    };
  });
}

export const isShell = ({ language }: Block) => ['sh', 'bash', 'shell', 'console'].includes(language);

export const getSkipReason = ({ note }: Block) => /^not run: (.{10,})/s.exec(note ?? '')?.[1];
/** Returns the commands that prepare a block; readers do not need them, because their service already has the result. */
export const getPreparation = ({ note }: Block) => /^first:\s+(.+)/s.exec(note ?? '')?.[1] ?? '';
