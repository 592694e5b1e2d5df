import { type Command, InvalidArgumentError } from 'commander';
import { changesBetween } from '../../domain/config-changes.ts';
import { AppError } from '../../errors.ts';
import type { Output } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { pageReader, pagesOf } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { changeLines } from '../files/apply.ts';
import { addConnectionOptions, type ConnectionOptions, type JsonOption, refusesUsage } from '../options.ts';
import { print, printJson, tableOf } from '../print.ts';
import { operationCommand } from './operation-command.ts';
import { printConfig } from './servers.ts';

type Options = ConnectionOptions & JsonOption;
type Version = Output<'listVersions'>['versions'][number];

export function addVersions(program: Command): void {
  const versions = program
    .command('versions')
    .description('show, compare, and restore the versions of a hosted server');
  operationCommand(versions, ['list', 'listVersions'], {
    isDefault: true,
    args: { slug: undefined },
    help: 'Examples:\n  toolhost versions projects\n  toolhost versions list projects --json',
    list: 'versions',
    ofPage: versionsOfPage,
    text: ({ versions: all }) =>
      tableOf(all, {
        version: 'version',
        'stored at': 'created_at',
        by: ({ created_by, created_by_name }) => created_by_name ?? created_by,
        message: ({ message }) => message ?? '',
        tools: ({ config: { tools } }) => (Array.isArray(tools) ? tools.length : 0),
      }),
  });
  addConnectionOptions(versions.command('show'))
    .description('print one version as a configuration file; secrets are masked')
    .argument('<slug>', 'slug of the server')
    .argument('<version>', 'version number', versionOf)
    .addHelpText('after', '\nExample:\n  toolhost versions show projects 3 > projects-3.yaml')
    .action(show);
  refusesUsage(addConnectionOptions(versions.command('diff')))
    .description('compare two versions, field by field')
    .argument('<slug>', 'slug of the server')
    .argument('<version>', 'number of the older version', versionOf)
    .argument('[other]', 'number of the newer version (default: the current one)', versionOf)
    .addHelpText(
      'after',
      '\nExit codes: 0 no differences, 1 a problem, 2 differences.\n\nExamples:\n  toolhost versions diff projects 3\n  toolhost versions diff projects 3 5',
    )
    .action(diff);
  operationCommand(versions, ['restore', 'restoreVersion'], {
    about: 'restore an older version as a new version; secrets stay unchanged',
    args: { slug: undefined, version: ['version number', versionOf] },
    help: 'Example:\n  toolhost versions restore projects 3',
  });
}

function versionOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('allowed: a version number, such as 3');
  return Number(text);
}

/** Page size of versions; small, because each version holds a whole configuration. */
const versionsOfPage = 20;

/** Finds the versions with these numbers; undefined stands for the newest. @throws AppError notFound */
async function find(client: RestClient, slug: string, wanted: readonly (number | undefined)[]): Promise<Version[]> {
  const found = new Map<number | undefined, Version>();
  const read = pageReader(client, ['listVersions', 'versions'], { slug });
  for await (const { entries } of pagesOf(read, { ofPage: versionsOfPage })) {
    if (!found.has(undefined) && entries[0]) found.set(undefined, entries[0]);
    for (const version of entries) if (wanted.includes(version.version)) found.set(version.version, version);
    if (wanted.every((number) => found.has(number))) break;
  }
  return wanted.map((number) => {
    const version = found.get(number);
    if (version) return version;
    throw new AppError(
      'notFound',
      `the server ${slug} has no version ${number}. The current version is ${found.get(undefined)?.version}; the oldest versions are deleted when there are too many`,
    );
  });
}

async function show(slug: string, number: number, options: Options): Promise<void> {
  const [version] = await find(await connect(options), slug, [number]);
  if (options.json) return printJson(version);
  const by = version?.created_by_name ?? version?.created_by;
  await printConfig([`Version ${version?.version} of ${version?.created_at}, by ${by}`], version?.config);
}

async function diff(slug: string, number: number, other: number | undefined, options: Options): Promise<void> {
  const client = await connect(options);
  const [before, after] = await find(client, slug, [number, other]);
  const changes = await changesBetween(before?.config, after?.config);
  if (changes.length > 0) process.exitCode = 2;
  if (options.json) return printJson({ from: before?.version, to: after?.version, changes });
  const what = `version ${before?.version} and version ${after?.version} of ${slug}`;
  if (changes.length === 0) return print(`No differences between ${what}.`);
  print([`Differences between ${what}:`, ...changes.flatMap((change) => changeLines(change, false))].join('\n'));
}
