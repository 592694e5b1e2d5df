import type { Command } from 'commander';
import { yamlNumbers } from '../../domain/json/yaml-numbers.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { AppError } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import { programName } from '../../version.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { oneServer } from '../connection/one-server.ts';
import { listedServers } from '../connection/pages.ts';
import { ask } from '../input/ask.ts';
import { readConfigFile } from '../input/config-file.ts';
import { note, oneLine, print, printJson, table } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true };
type Shown = Output<'getMcpServer'>;

export function addServers(program: Command): void {
  const servers = program.command('servers').description('manage the hosted servers of a running service');
  addConnectionOptions(servers.command('list')).description('list the hosted servers of the workspace').action(list);
  addConnectionOptions(servers.command('get'))
    .description('print a server as a configuration file, secrets masked')
    .argument('<slug>', 'slug of the server')
    .addHelpText('after', '\nExample:\n  toolhost servers get projects > projects.yaml')
    .action(get);
  addConnectionOptions(servers.command('create'))
    .description('create a server from its configuration')
    .argument('<file>', 'JSON or YAML; - reads standard input')
    .addHelpText(
      'after',
      '\nExamples:\n  toolhost servers create server.yaml\n  jq . server.json | toolhost servers create -',
    )
    .action((file: string, options: Options) => store('createMcpServer', file, options));
  addConnectionOptions(servers.command('update'))
    .description('replace the whole configuration of the server whose slug the file has')
    .argument('<file>', 'JSON or YAML; - reads standard input')
    .addHelpText(
      'after',
      '\nA secret that is ******** in the file stays as it is stored.\n\nExample:\n  toolhost servers update server.yaml',
    )
    .action((file: string, options: Options) => store('replaceMcpServer', file, options));
  addConnectionOptions(servers.command('delete'))
    .description('delete a server with its secrets; its slug cannot be used again')
    .argument('<slug>', 'slug of the server')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      '\nAt a terminal the slug has to be typed again. Elsewhere --yes is needed.\n\nExample:\n  toolhost servers delete projects --yes',
    )
    .action(remove);
}

async function list(options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const servers = await listedServers(client);
  if (options.json) return printJson({ servers });
  if (servers.length === 0)
    return print(`There are no servers yet; create one with: ${programName} servers create server.yaml`);
  const isAnyImported = servers.some(({ imported }) => imported);
  const rows = servers.map((s) => [
    s.slug,
    s.name,
    s.access,
    String(s.tool_count),
    String(s.version),
    ...(isAnyImported ? [importText(s)] : []),
    s.url,
  ]);
  print(table(['SLUG', 'NAME', 'ACCESS', 'TOOLS', 'VERSION', ...(isAnyImported ? ['IMPORT'] : []), 'URL'], rows));
}

/** What is known of the description that a server was imported from, in a word. */
function importText({ imported }: Shown['server']): string {
  if (!imported) return '';
  if (imported.error !== undefined) return 'unreadable';
  if (imported.changed === undefined) return imported.watch === 'daily' ? 'watched' : 'imported';
  return imported.changed ? 'changed' : 'up to date';
}

async function get(slug: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const shown = await oneServer(client, slug);
  if (options.json) return printJson(shown);
  const { stringify } = await import('yaml');
  print(
    [
      ...summary(shown).map((line) => `# ${oneLine(line)}`),
      stringify(shown.config, { lineWidth: 0, ...yamlNumbers }).trimEnd(),
    ].join('\n'),
  );
}

/** Details outside the configuration, as comments, so that the whole output is a valid configuration file. */
function summary({ server, secrets, callback_url, warnings }: Shown): string[] {
  return [
    `${server.url} (${server.access}), version ${server.version} of ${server.updated_at}`,
    ...(secrets.length > 0 ? [`Secrets with a value: ${secrets.join(', ')}`] : []),
    ...(callback_url === undefined ? [] : [`Callback URL to register with the provider: ${callback_url}`]),
    ...warnings.map(({ path, message }) => `Warning: ${path}: ${message}`),
  ];
}

async function store(name: 'createMcpServer' | 'replaceMcpServer', file: string, options: Options): Promise<void> {
  const config = await readConfigFile(file);
  const foreign = foreignDocument(config);
  if (foreign !== undefined) throw new AppError('invalid', `${file}: ${foreign}`);
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new AppError('invalid', `${file}: is not a configuration; allowed: an object with name, slug and tools`);
  }
  const section = ['secrets', 'limits'].find((field) => field in config);
  if (section !== undefined)
    throw new AppError('invalid', `${file}: ${section}: only apply reads this section; use: toolhost apply ${file}`);
  if (name === 'replaceMcpServer' && !isSlug((config as { slug?: unknown }).slug)) {
    throw new AppError('invalid', `${file}: slug: names the server to update; allowed: the slug of a hosted server`);
  }
  const client = await connect(options, process.env);
  // The service validates the content of the file.
  const stored = await client.run(name, config as Input<typeof name>);
  if (options.json) return printJson(stored);
  // Replacing is no tool, so it has no text of its own; the text of an update fits.
  const { operations } = await import('../../operations/index.ts');
  print(operations[name === 'createMcpServer' ? name : 'updateMcpServer'].say?.(stored) ?? '');
}

function isSlug(slug: unknown): boolean {
  return typeof slug === 'string' && slug !== '';
}

async function remove(slug: string, options: Options & { yes?: true }): Promise<void> {
  const client = await connect(options, process.env);
  if (!options.yes) {
    if (!process.stdin.isTTY)
      throw new AppError(
        'invalid',
        `this would delete the server ${slug} with its secrets, for good; nothing was deleted; add --yes to allow it`,
      );
    note(`This deletes the server ${slug} with its secrets, for good. Its slug cannot be used again.`);
    const typed = await ask('Type the slug to confirm: ', { input: process.stdin, output: process.stderr });
    if (typed !== slug) throw new AppError('invalid', `"${typed}" is not the slug; nothing was deleted`);
  }
  const deleted = await client.run('deleteMcpServer', { slug });
  if (options.json) return printJson(deleted);
  const { operations } = await import('../../operations/index.ts');
  print(operations.deleteMcpServer.say?.(deleted) ?? '');
}
