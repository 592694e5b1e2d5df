import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { root } from '../files.ts';
import { userPages } from '../support/pages/blocks.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

type Found = { at: string; words: string[]; isCode: boolean };

/** Finds every `toolhost …` on the pages with its line, up to where the shell or Markdown ends it. */
function commandsOnPages(): Found[] {
  const written = /(?<![\w./-])(?:bin\/)?toolhost ((?:[a-z][a-z-]*|--?[a-z][a-z-]*)(?: [^`|&;<>#)]*)?)/g;
  return [...userPages(), 'docs/reference/command-line.md'].flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        [...line.matchAll(written)].map(({ index: start, 1: text = '' }) => ({
          at: `${page}:${index + 1}`,
          isCode: line[start - 1] === '`',
          words: text.trim().split(/[ =]+/),
        })),
      ),
  );
}

/** Returns the command that the words name, and the words after it. */
function commandOf(words: readonly string[]): { path: string[]; command: Command; rest: string[] } {
  let command = createProgram();
  const path: string[] = [];
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (!next) break;
    path.push(word);
    command = next;
  }
  return { path, command, rest: words.slice(path.length) };
}

/** Returns true if a command group accepts an unknown word as an argument of its default command. */
async function hasDefault(path: readonly string[], word: string): Promise<boolean> {
  const { stderr } = await toolhost([...path, word, '--no-such-option']);
  return !stderr.includes('unknown command');
}

describe('the commands within the text of pages', () => {
  it('[ship 8] use only names and options that exist in the command line', async () => {
    const faults: string[] = [];
    const all = commandsOnPages();
    for (const { at, words, isCode } of all) {
      const { path, command, rest } = commandOf(words);
      const [next = ''] = rest;
      const mayBeUnknown = path.length === 0 ? isCode : command.commands.length > 0;
      if (mayBeUnknown && /^[a-z]/.test(next) && next !== 'help' && !(await hasDefault(path, next)))
        faults.push(`${at}: toolhost ${[...path, next].join(' ')} is not a command`);
      const known = new Set(['--help', ...command.options.map(({ long }) => long)]);
      const wrong = path.length === 0 ? [] : rest.filter((word) => /^--[a-z]/.test(word) && !known.has(word));
      // Options of a group's default command may follow its argument.
      if (wrong.length > 0 && command.commands.length === 0)
        faults.push(`${at}: toolhost ${path.join(' ')} has no ${wrong.join(' ')}`);
    }
    assert.ok(all.length > 100, String(all.length));
    assert.deepEqual(faults, []);
  });
});
