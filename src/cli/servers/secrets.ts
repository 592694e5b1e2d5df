import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { AppError } from '../../errors.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { askHidden } from '../input/ask.ts';
import { readTextFile } from '../input/config-file.ts';
import { print, printJson, table } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true };
type SetOptions = Options & { valueFile?: string };

export function addSecrets(program: Command): void {
  const secrets = program.command('secrets').description('manage the secrets that fill {{NAME}} in a hosted server');
  addConnectionOptions(secrets.command('set'))
    .description('store a secret; its value is read from standard input or typed unseen, and never shown again')
    .argument('<slug>', 'slug of the server')
    .argument('<name>', 'NAME of {{NAME}}')
    .option('--value-file <file>', 'read the value from a file')
    // Refused here, because the usual message would repeat the value.
    .allowExcessArguments()
    .addHelpText(
      'after',
      `
The value is never an argument, where other people of the machine and the shell's history would see it.
It goes only to the hosts that the server's tools call now.

Examples:
  toolhost secrets set projects SERVICE_KEY
  pass show service-key | toolhost secrets set projects SERVICE_KEY
  toolhost secrets set projects SERVICE_KEY --value-file /run/secrets/service-key`,
    )
    .action(set);
  addConnectionOptions(secrets.command('list'))
    .description('list the names of the secrets that have a value')
    .argument('<slug>', 'slug of the server')
    .action(list);
  addConnectionOptions(secrets.command('delete'))
    .description('delete a secret')
    .argument('<slug>', 'slug of the server')
    .argument('<name>', 'NAME of {{NAME}}')
    .action(remove);
}

async function set(slug: string, name: string, options: SetOptions, command: Command): Promise<void> {
  if (command.args.length > 2) {
    command.error(
      'error: the value is never an argument; give it on standard input, at the prompt or with --value-file',
    );
  }
  const client = await connect(options, process.env);
  const value = await readValue(name, options.valueFile);
  const stored = await client.run('setSecret', { slug, name, value });
  if (options.json) return printJson(stored);
  const origins = stored.origins.join(', ') || 'no host yet, as the server has no tools';
  const uses = stored.used_by.length > 0 ? `Used by ${stored.used_by.join(', ')}.` : `Nothing uses {{${name}}} yet.`;
  print(`The secret ${name} of ${slug} is stored. It goes only to ${origins}. ${uses}`);
}

async function readValue(name: string, file: string | undefined): Promise<string> {
  const raw = file === undefined ? await typedOrPiped(name) : await readTextFile(file);
  // Editors and `echo` end a file with a line break that is not part of the secret.
  const value = raw.replace(/\r?\n$/, '');
  if (value === '') throw new AppError('invalid', `the value of ${name} is empty; nothing was stored`);
  return value;
}

function typedOrPiped(name: string): Promise<string> {
  const { stdin, stderr } = process;
  return stdin.isTTY ? askHidden(`Value of ${name}: `, { input: stdin, output: stderr }) : text(stdin);
}

async function list(slug: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const answer = await client.run('listSecrets', { slug });
  if (options.json) return printJson(answer);
  if (answer.secrets.length === 0) return print(`The server ${slug} has no secrets.`);
  const rows = answer.secrets.map((s) => [
    s.name,
    s.updated_at,
    s.origins.join(','),
    s.used_by.join(', ') || 'nothing',
  ]);
  print(table(['NAME', 'SET AT', 'GOES TO', 'USED BY'], rows));
}

async function remove(slug: string, name: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const deleted = await client.run('deleteSecret', { slug, name });
  if (options.json) printJson(deleted);
  else print(`The secret ${name} of ${slug} is deleted.`);
}
