import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../../apps/cli/src/program.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

/** Commands that print no data and therefore have no --json. */
const commandsWithoutJson = ['serve', 'dev', 'schema', 'completion', 'complete'];

type LeafCommand = { name: string; command: Command };
function findLeafCommands(command: Command, name = ''): LeafCommand[] {
  if (command.commands.length === 0) return [{ name, command }];
  return command.commands.flatMap((subcommand) => findLeafCommands(subcommand, `${name} ${subcommand.name()}`.trim()));
}

describe('every command', () => {
  let help = '';
  const leafCommands = findLeafCommands(createProgram({ width: 80, write: (text) => (help += text) }));

  it('[ship 7] prints JSON with --json', () => {
    assert.ok(leafCommands.length > 30);
    for (const { name, command } of leafCommands)
      assert.ok(commandsWithoutJson.includes(name) || command.options.some(({ long }) => long === '--json'), name);
  });

  it('[ship 7] fits its help into 80 columns and describes each argument and option', () => {
    for (const { name, command } of leafCommands) {
      assert.notEqual(command.description(), '', name);
      for (const argument of command.registeredArguments)
        assert.notEqual(argument.description, '', `${name} ${argument.name()}`);
      for (const { flags, description } of command.options) assert.notEqual(description, '', `${name} ${flags}`);
      help = '';
      command.outputHelp();
      // URLs and command lines are not wrapped.
      const longLines = help.split('\n').filter((line) => line.length > 80 && !/^ {2}\S|^ {2,}.*https?:/.test(line));
      assert.deepEqual(name === 'serve' ? [] : longLines, [], name);
    }
  });

  it('[ship 7] reports a failure as one JSON object with --json, with the same exit codes', async () => {
    const env = { TOOLHOST_URL: 'http://127.0.0.1:1', TOOLHOST_API_KEY: 'thk_x' };
    const cases: [string[], number, string][] = [
      [['servers', 'list'], 1, 'unavailable'],
      [['servers', 'list', '--jsn'], 2, 'usage'],
      [['servers', 'get'], 2, 'usage'],
      [['calls', '--since', 'tomorrow'], 2, 'usage'],
      [['diff'], 1, 'usage'],
      [['servers', 'create', '/nowhere.yaml'], 1, 'notFound'],
      [['profiles', 'use', 'nobody'], 1, 'notFound'],
      [['restore', '/nowhere.backup'], 1, 'notFound'],
    ];
    for (const [args, code, kind] of cases) {
      const ended = await runToolhostCommand([...args, '--json'], { env: { ...env, XDG_CONFIG_HOME: '/nowhere' } });
      assert.deepEqual([ended.code, ended.stdout], [code, ''], args.join(' '));
      const { error } = JSON.parse(ended.stderr) as { error: { kind: string; message: string; problems: object[] } };
      assert.deepEqual([error.kind, Array.isArray(error.problems)], [kind, true], ended.stderr);
      assert.doesNotMatch(error.message, /^error|^\s+at /m);
    }
  });
});
