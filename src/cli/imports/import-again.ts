import type { Command } from 'commander';
import type { Input } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { collectAnswer, collectText } from '../input/repeated-options.ts';
import { print, printJson } from '../print/print.ts';
import { readImportSource } from './import-source.ts';

type Options = ConnectionOptions & {
  add?: string[];
  take?: string[];
  server?: string;
  set?: Record<string, string>;
  apply?: true;
  json?: true;
};

export function addImportAgain(program: Command): void {
  addConnectionOptions(program.command('import-again'))
    .description('import the API description of a server again: edits stay, other fields follow the description')
    .argument('<slug>')
    .argument('[file|url]', 'the description; that of the last import when left out; - reads standard input')
    .option('--apply', 'store the result as one new version; without it only what would change is printed')
    .option('--add <what>', 'operations to add, as for import --include; may be given several times', collectText)
    .option(
      '--take <key>',
      "a conflict in which the description is right; '*' is all; may be given several times",
      collectText,
    )
    .option('--server <url>', 'address of the API, instead of the one in the description')
    .option('--set <name=value>', 'answers to questions, besides those of the last import', collectAnswer)
    .addHelpText(
      'after',
      `
Exits with 2 when something would change and --apply is not given.

Examples:
  toolhost import-again shop
  toolhost import-again shop openapi.json --take get_pet.description --add 'GET /owners' --apply`,
    )
    .action(runImportAgain);
}

async function runImportAgain(slug: string, from: string | undefined, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const source = from === undefined ? undefined : await readImportSource(from);
  const input = {
    slug,
    mode: options.apply ? ('apply' as const) : ('plan' as const),
    document: source?.text,
    url: source?.url,
    add: options.add,
    take: options.take,
    server: options.server,
    answers: options.set,
  };
  const result = await client.run('importAgain', input as Input<'importAgain'>);
  const { changed, added } = result.counts;
  if (!options.apply && changed + added + result.server.length > 0) process.exitCode = 2;
  if (options.json) return printJson(result);
  const { operations } = await import('../../operations/index.ts');
  print(operations.importAgain.say?.(result) ?? '');
}
