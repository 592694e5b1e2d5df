import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { root } from '../files.ts';
import { userPages } from '../support/pages/blocks.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

/** A command with its own options, as its help lists them. */
type Help = { commands: Set<string>; options: Set<string> };

async function helpOf(words: readonly string[]): Promise<Help> {
  const { code, stdout } = await toolhost([...words, '--help']);
  assert.equal(code, 0, `toolhost ${words.join(' ')}`);
  // Commands stand in groups with headings of their own.
  const list = stdout
    .split('\n\n')
    .filter((group) => !/^(?:Usage|Options|Arguments|Examples?):/.test(group))
    .join('\n');
  return {
    commands: new Set([...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name)),
    options: new Set([...stdout.matchAll(/^ +(?:-\w, )?(--[a-z-]+)/gm)].map(([, name = '']) => name)),
  };
}

/** Whether a group takes a word that is none of its commands as an argument of its usual command. */
async function hasDefault(path: readonly string[], word: string): Promise<boolean> {
  const { stderr } = await toolhost([...path, word, '--no-such-option']);
  return !stderr.includes('unknown command');
}

/** Every `toolhost …` of the pages with its line, up to what a shell or Markdown ends it with. */
function commandsOnPages(): { at: string; words: string[]; isCode: boolean }[] {
  return userPages().flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        [...line.matchAll(/(?<![\w./-])(?:bin\/)?toolhost ((?:[a-z][a-z-]*|--?[a-z][a-z-]*)(?: [^`|&;<>#]*)?)/g)].map(
          ({ index: start, 1: text = '' }) => ({
            at: `${page}:${index + 1}`,
            isCode: line[start - 1] === '`',
            words: text.trim().split(/[ =]+/),
          }),
        ),
      ),
  );
}

describe('the commands within the text of pages', () => {
  const known = new Map<string, Help>();
  before(async () => {
    known.set('', await helpOf([]));
  });

  it('[ship 8] and their options are those of the command line', async () => {
    const faults: string[] = [];
    for (const { at, words, isCode } of commandsOnPages()) {
      const path: string[] = [];
      let help = known.get('') ?? assert.fail();
      for (const word of words) {
        if (!help.commands.has(word)) break;
        path.push(word);
        help = known.get(path.join(' ')) ?? (await helpOf(path));
        known.set(path.join(' '), help);
      }
      const next = words[path.length] ?? '';
      const isUnknown =
        path.length === 0 ? isCode && !next.startsWith('-') : help.commands.size > 0 && /^[a-z]/.test(next);
      if (isUnknown && !(await hasDefault(path, next)))
        faults.push(`${at}: toolhost ${[...path, next].join(' ')} is no command`);
      if (path.length === 0) continue;
      const wrong = words.filter((word) => /^--[a-z]/.test(word) && !help.options.has(word));
      if (wrong.length > 0) faults.push(`${at}: toolhost ${path.join(' ')} has no ${wrong.join(' ')}`);
    }
    assert.ok(known.size > 20, String(known.size));
    assert.deepEqual(faults, []);
  });
});
