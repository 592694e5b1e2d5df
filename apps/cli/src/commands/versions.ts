import { AppError } from '@toolhost/errors/errors';
import type { Output } from '@toolhost/server/operations';
import { diffConfigs } from '@toolhost/tool-config/config-changes';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/connect.ts';
import { createPageReader, readPages } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { formatPlannedChange } from '../files/apply.ts';
import { addConnectionOptions, type ConnectionOptions, exitWithOneOnUsageError, type JsonOption } from '../options.ts';
import { formatTable, print, printJson } from '../print.ts';
import { addOperationCommand } from './operation-command.ts';
import { printConfig } from './servers.ts';

type Options = ConnectionOptions & JsonOption;
type Version = Output<'listVersions'>['versions'][number];

export function addVersions(program: Command): void {
  const versions = program
    .command('versions')
    .description('show, compare, and restore the versions of a hosted server');
  addOperationCommand(versions, ['list', 'listVersions'], {
    isDefault: true,
    positionals: { slug: undefined },
    help: 'Examples:\n  toolhost versions projects\n  toolhost versions list projects --json',
    list: 'versions',
    pageSize: versionsPerPage,
    formatOutput: (output) =>
      formatTable(output.versions, {
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
    .argument('<version>', 'version number', parseVersion)
    .addHelpText('after', '\nExample:\n  toolhost versions show projects 3 > projects-3.yaml')
    .action(showVersion);
  exitWithOneOnUsageError(addConnectionOptions(versions.command('diff')))
    .description('compare two versions, field by field')
    .argument('<slug>', 'slug of the server')
    .argument('<version>', 'number of the older version', parseVersion)
    .argument('[other]', 'number of the newer version (default: the current one)', parseVersion)
    .addHelpText(
      'after',
      '\nExit codes: 0 no differences, 1 a problem, 2 differences.\n\nExamples:\n  toolhost versions diff projects 3\n  toolhost versions diff projects 3 5',
    )
    .action(diffVersions);
  addOperationCommand(versions, ['restore', 'restoreVersion'], {
    description: 'restore an older version as a new version; secrets stay unchanged',
    positionals: { slug: undefined, version: ['version number', parseVersion] },
    help: 'Example:\n  toolhost versions restore projects 3',
  });
}

function parseVersion(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('allowed: a version number, such as 3');
  return Number(text);
}

/** Versions per page; few, because each of them holds a whole configuration. */
const versionsPerPage = 20;

/** Reads the versions with these numbers; undefined stands for the newest. @throws AppError notFound */
async function getVersions(
  client: RestClient,
  slug: string,
  numbers: readonly (number | undefined)[],
): Promise<Version[]> {
  const versionByNumber = new Map<number | undefined, Version>();
  const read = createPageReader(client, ['listVersions', 'versions'], { slug });
  for await (const { entries } of readPages(read, { pageSize: versionsPerPage })) {
    if (!versionByNumber.has(undefined) && entries[0]) versionByNumber.set(undefined, entries[0]);
    for (const version of entries) if (numbers.includes(version.version)) versionByNumber.set(version.version, version);
    if (numbers.every((number) => versionByNumber.has(number))) break;
  }
  return numbers.map((number) => {
    const version = versionByNumber.get(number);
    if (version) return version;
    throw new AppError(
      'notFound',
      `the server ${slug} has no version ${number}. The current version is ${versionByNumber.get(undefined)?.version}; the oldest versions are deleted when there are too many`,
    );
  });
}

async function showVersion(slug: string, number: number, options: Options): Promise<void> {
  const [version] = await getVersions(await connect(options), slug, [number]);
  if (options.json) return printJson(version);
  const by = version?.created_by_name ?? version?.created_by;
  await printConfig([`Version ${version?.version} of ${version?.created_at}, by ${by}`], version?.config);
}

async function diffVersions(
  slug: string,
  number: number,
  otherNumber: number | undefined,
  options: Options,
): Promise<void> {
  const client = await connect(options);
  const [older, newer] = await getVersions(client, slug, [number, otherNumber]);
  const changes = await diffConfigs(older?.config, newer?.config);
  if (changes.length > 0) process.exitCode = 2;
  if (options.json) return printJson({ from: older?.version, to: newer?.version, changes });
  const comparison = `version ${older?.version} and version ${newer?.version} of ${slug}`;
  if (changes.length === 0) return print(`No differences between ${comparison}.`);
  print(
    [`Differences between ${comparison}:`, ...changes.flatMap((change) => formatPlannedChange(change, false))].join(
      '\n',
    ),
  );
}
