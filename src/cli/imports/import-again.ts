import { type Command, Option } from 'commander';
import { AppError } from '../../errors.ts';
import type { Input } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { collectAnswer, collectText } from '../input/repeated-options.ts';
import { print, printJson } from '../print/print.ts';
import { collectHeader, readImportSource } from './import-source.ts';

type Options = ConnectionOptions & {
  add?: string[];
  take?: string[];
  server?: string;
  header?: Record<string, string>;
  set?: Record<string, string>;
  apply?: true;
  check?: true;
  watch?: 'daily' | 'never';
  json?: true;
};

export function addImportAgain(program: Command): void {
  addConnectionOptions(program.command('import-again'))
    .description('import the API description of a server again: edits stay, other fields follow the description')
    .argument('<slug>', 'slug of the server')
    .argument('[file|url]', 'the description; that of the last import when left out; - reads standard input')
    .option('--apply', 'store the result as one new version; without it only what would change is printed')
    .option('--add <what>', 'operations to add, as for import --include; may be given several times', collectText)
    .option(
      '--take <key>',
      "a conflict in which the description is right; '*' is all; may be given several times",
      collectText,
    )
    .option('--server <url>', 'address of the API, instead of the one in the description')
    .option(
      '--header <header>',
      "for a description behind a login: 'Name: value'; that of the last import when left out",
      collectHeader,
    )
    .option('--set <name=value>', 'answers to questions, besides those of the last import', collectAnswer)
    .addOption(
      new Option('--check', 'only note for lists of servers what has changed').conflicts(['apply', 'add', 'take']),
    )
    .addOption(new Option('--watch <how>', 'whether the service does that every day').choices(['daily', 'never']))
    .addHelpText(
      'after',
      `
Exits with 2 when something would change and --apply is not given.

Examples:
  toolhost import-again shop
  toolhost import-again shop --watch daily
  toolhost import-again shop openapi.json --take get_pet.description --add 'GET /owners' --apply`,
    )
    .action(runImportAgain);
}

async function runImportAgain(slug: string, from: string | undefined, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  if (options.check || options.watch !== undefined) return checkOrWatch(client, slug, from, options);
  const source = from === undefined ? undefined : await readImportSource(from, options.header);
  const input = {
    slug,
    mode: options.apply ? ('apply' as const) : ('plan' as const),
    document: source?.text,
    url: source?.url,
    headers: options.header,
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

/** Compares the description at its address with the last import, and sets whether that is done every day. */
async function checkOrWatch(
  client: RestClient,
  slug: string,
  from: string | undefined,
  options: Options,
): Promise<void> {
  if (from !== undefined) {
    throw new AppError(
      'invalid',
      `${from}: --check and --watch read the description at the address of the last import; leave it out`,
    );
  }
  const { watch } = options;
  const watched = watch && (await client.run('watchImport', { slug, watch }));
  const checked = options.check && (await client.run('compareImport', { slug }));
  const { imported } = checked ?? watched ?? {};
  if (checked) process.exitCode = imported?.error === undefined ? (imported?.changed ? 2 : 0) : 1;
  if (options.json) return printJson({ slug, imported });
  const { operations } = await import('../../operations/index.ts');
  if (watched) print(operations.watchImport.say?.(watched) ?? '');
  if (checked) print(operations.compareImport.say?.(checked) ?? '');
}
