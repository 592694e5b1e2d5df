import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../../apps/cli/src/program.ts';
import { root } from '../files.ts';
import { userPages } from '../support/pages/blocks.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

type InlineCommand = { at: string; words: string[]; isCode: boolean };

/** Finds every `toolhost …` on the pages with its line, up to where the shell or Markdown ends it. */
function findInlineCommands(): InlineCommand[] {
  const commandPattern = /(?<![\w./-])(?:bin\/)?toolhost ((?:[a-z][a-z-]*|--?[a-z][a-z-]*)(?: [^`|&;<>#)]*)?)/g;
  return [...userPages(), 'docs/reference/command-line.md'].flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        [...line.matchAll(commandPattern)].map(({ index: start, 1: text = '' }) => ({
          at: `${page}:${index + 1}`,
          isCode: line[start - 1] === '`',
          words: text.trim().split(/[ =]+/),
        })),
      ),
  );
}

/** Returns the command that the words name, and the words after it. */
function resolveCommand(words: readonly string[]): { path: string[]; command: Command; rest: string[] } {
  let command = createProgram();
  const path: string[] = [];
  for (const word of words) {
    const next = command.commands.find(
      (subcommand) => subcommand.name() === word || subcommand.aliases().includes(word),
    );
    if (!next) break;
    path.push(word);
    command = next;
  }
  return { path, command, rest: words.slice(path.length) };
}

/** Returns true if a command group accepts an unknown word as an argument of its default command. */
async function hasDefaultCommand(path: readonly string[], word: string): Promise<boolean> {
  const { stderr } = await runToolhostCommand([...path, word, '--no-such-option']);
  return !stderr.includes('unknown command');
}

describe('the commands within the text of pages', () => {
  it('[ship 8] use only names and options that exist in the command line', async () => {
    const faults: string[] = [];
    const inlineCommands = findInlineCommands();
    for (const { at, words, isCode } of inlineCommands) {
      const { path, command, rest } = resolveCommand(words);
      const [next = ''] = rest;
      const canBeUnknown = path.length === 0 ? isCode : command.commands.length > 0;
      if (canBeUnknown && /^[a-z]/.test(next) && next !== 'help' && !(await hasDefaultCommand(path, next)))
        faults.push(`${at}: toolhost ${[...path, next].join(' ')} is not a command`);
      const known = new Set(['--help', ...command.options.map(({ long }) => long)]);
      const unknownOptions = path.length === 0 ? [] : rest.filter((word) => /^--[a-z]/.test(word) && !known.has(word));
      // Options of a group's default command may follow its argument.
      if (unknownOptions.length > 0 && command.commands.length === 0)
        faults.push(`${at}: toolhost ${path.join(' ')} has no ${unknownOptions.join(' ')}`);
    }
    assert.ok(inlineCommands.length > 100, String(inlineCommands.length));
    assert.deepEqual(faults, []);
  });
});
