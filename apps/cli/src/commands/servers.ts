import { text as readText } from 'node:stream/consumers';
import { AppError } from '@toolhost/errors/errors';
import { describeForeignDocument } from '@toolhost/errors/input-errors';
import { parseJson } from '@toolhost/json/json';
import { yamlNumberOptions } from '@toolhost/json/yaml-numbers';
import { programName } from '@toolhost/server/command-line';
import { type Input, type Output, operations } from '@toolhost/server/operations';
import type { Command } from 'commander';
import { promptHidden } from '../ask.ts';
import { withFieldLabels } from '../command-terms.ts';
import { connect } from '../connection/connect.ts';
import { readServerWithConfig } from '../connection/lists.ts';
import { readConfigFile, readTextFile } from '../files/server-files.ts';
import {
  addConnectionOptions,
  type ConnectionOptions,
  collectNamedValues,
  type JsonOption,
  type NamedValue,
} from '../options.ts';
import { formatTable, lastUseColumn, print, printAgentText, printJson, toOneLine } from '../print.ts';
import { addOperationCommand } from './operation-command.ts';

type Options = ConnectionOptions & JsonOption;
type Fields = { [field: string]: unknown };

export function addServers(program: Command): void {
  const servers = program.command('servers').description('manage the hosted servers of a running service');
  addOperationCommand(servers, ['list', 'listMcpServers'], {
    list: 'servers',
    formatOutput: (output) => formatServerTable(output.servers),
  });
  addConnectionOptions(servers.command('get'))
    .description('print a server as a configuration file; secrets are masked')
    .argument('<slug>', 'slug of the server')
    .addHelpText('after', '\nExample:\n  toolhost servers get projects > projects.yaml')
    .action(showServer);
  addConnectionOptions(servers.command('create'))
    .description('create a server from its configuration')
    .argument('<file>', 'JSON or YAML file; - reads standard input')
    .addHelpText(
      'after',
      '\nExamples:\n  toolhost servers create server.yaml\n  sed s/staging/live/ server.yaml | toolhost servers create -',
    )
    .action((file: string, options: Options) => storeServer('createMcpServer', file, options));
  addConnectionOptions(servers.command('update'))
    .description('replace the whole configuration of the server whose slug is in the file')
    .argument('<file>', 'JSON or YAML file; - reads standard input')
    .addHelpText(
      'after',
      '\nA secret that is ******** in the file keeps its stored value.\n\nExample:\n  toolhost servers update server.yaml',
    )
    .action((file: string, options: Options) => storeServer('replaceMcpServer', file, options));
  addOperationCommand(servers, ['delete', 'deleteMcpServer'], {
    positionals: { slug: undefined },
    help: 'At a terminal, type the slug to confirm. Otherwise, --yes is required.\n\nExample:\n  toolhost servers delete projects --yes',
    getConfirmation: ({ slug }) => ({
      effect: `delete the server ${slug}, which can be restored for 30 days`,
      confirmationWord: slug,
    }),
  });
  addOperationCommand(servers, ['deleted', 'listDeletedServers'], {
    list: 'servers',
    formatOutput: (output) =>
      output.servers.length === 0
        ? 'No deleted servers can be restored.'
        : formatTable(output.servers, {
            slug: 'slug',
            name: 'name',
            secrets: 'secret_count',
            'deleted at': 'deleted_at',
            'restorable until': 'restorable_until',
          }),
  });
  addOperationCommand(servers, ['delete-secrets', 'deleteDeletedServerSecrets'], {
    positionals: { slug: 'slug of the deleted server' },
    getConfirmation: ({ slug }) => ({
      effect: `permanently delete all secrets of the deleted server ${slug}`,
      confirmationWord: slug,
    }),
    formatOutput: ({ deleted }, { slug }) => `Deleted ${deleted} ${deleted === 1 ? 'secret' : 'secrets'} of ${slug}.`,
  });
  addOperationCommand(servers, ['restore', 'restoreMcpServer'], {
    positionals: { slug: 'slug of the deleted server' },
    help: 'Restores its configuration, versions, secrets, limits, and logins.\n\nExample:\n  toolhost servers restore projects',
  });
}

function formatServerTable(servers: Output<'listMcpServers'>['servers']): string {
  if (servers.length === 0)
    return `There are no servers yet. Create one with: ${programName} servers create server.yaml`;
  const hasImported = servers.some(({ imported }) => imported);
  return formatTable(servers, {
    slug: 'slug',
    name: 'name',
    access: 'access',
    tools: 'tool_count',
    version: 'version',
    ...(hasImported && { import: formatImportState }),
    url: 'url',
  });
}

/** Summarizes the state of a server's imported API description in one or a few words. */
function formatImportState({ imported }: Output<'getMcpServer'>['server']): string {
  if (!imported) return '';
  if (imported.error !== undefined) return 'unreadable';
  if (imported.changed === undefined) return imported.watch === 'daily' ? 'watched' : 'imported';
  return imported.changed ? 'changed' : 'up to date';
}

async function showServer(slug: string, options: Options): Promise<void> {
  const result = await readServerWithConfig(await connect(options), slug);
  if (options.json) return printJson(result);
  const { server, secrets, callback_url, warnings } = result;
  // Comments, so that the whole output is a valid configuration file.
  const headerLines = [
    `${server.url} (${server.access}), version ${server.version} of ${server.updated_at}`,
    ...(secrets.length > 0 ? [`Secrets with a value: ${secrets.join(', ')}`] : []),
    ...(callback_url === undefined ? [] : [`Callback URL to register with the provider: ${callback_url}`]),
    ...warnings.map(({ path, message }) => `Warning: ${path}: ${message}`),
  ];
  await printConfig(headerLines, result.config);
}

/** Prints a configuration as a YAML file with a comment header. */
export async function printConfig(headerLines: readonly string[], config: unknown): Promise<void> {
  const { stringify } = await import('yaml');
  const yaml = stringify(config, { lineWidth: 0, ...yamlNumberOptions }).trimEnd();
  print([...headerLines.map((line) => `# ${toOneLine(line)}`), yaml].join('\n'));
}

async function storeServer(
  name: 'createMcpServer' | 'replaceMcpServer',
  file: string,
  options: Options,
): Promise<void> {
  const config = await readFields(file, 'a configuration; allowed: an object with name, slug, and tools');
  const section = ['secrets', 'limits'].find((field) => field in config);
  if (section !== undefined)
    throw new AppError(
      'invalid',
      `${file}: ${section}: only apply reads this section. Use: ${programName} apply ${file}`,
    );
  if (name === 'replaceMcpServer' && (typeof config.slug !== 'string' || config.slug === ''))
    throw new AppError('invalid', `${file}: slug: names the server to update; allowed: the slug of a hosted server`);
  const client = await connect(options);
  // The service validates the content of the file.
  const result = await client.run(name, config as Input<typeof name>);
  if (options.json) return printJson(result);
  // Replacing is not a management tool, so it has no agent text. The text of an update fits.
  printAgentText(operations[name === 'createMcpServer' ? name : 'updateMcpServer'].toAgentText?.(result));
}

/** Reads an object from a file. @throws AppError that names the file and the allowed form */
async function readFields(file: string, expectation: string): Promise<Fields> {
  const value = await readConfigFile(file);
  const foreignProblem = describeForeignDocument(value);
  if (foreignProblem !== undefined) throw new AppError('invalid', `${file}: ${foreignProblem}`);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new AppError('invalid', `${file}: is not ${expectation}`);
}

export function addTools(program: Command): void {
  const tools = program.command('tools').description('manage the tools of a hosted server one by one');
  addConnectionOptions(tools.command('list'))
    .description('list the tools of a server')
    .argument('<slug>', 'slug of the server')
    .action(listTools);
  addConnectionOptions(tools.command('add'))
    .description('add a tool to a server')
    .argument('<slug>', 'slug of the server')
    .argument('<file>', 'tool as JSON or YAML file; - reads standard input')
    .addHelpText('after', '\nExample:\n  toolhost tools add projects tool.yaml')
    .action(async (slug: string, file: string, options: Options) =>
      changeTool('addTool', { ...(await readToolFields(file)), slug }, options),
    );
  addConnectionOptions(tools.command('update'))
    .description('change fields of a tool; other fields stay unchanged')
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .argument('[file]', 'changed fields as JSON or YAML file; - reads standard input')
    .option(
      '--set <field=value>',
      'field to change; the value is JSON or plain text; null removes the field',
      collectNamedValues('allowed: field=value'),
      [],
    )
    .addHelpText(
      'after',
      `
A field replaces the stored field as a whole. Setting the field "name" renames the tool.

Examples:
  toolhost tools update projects list_projects --set timeout_ms=5000 --set response_fields=null
  toolhost tools update projects list_projects changes.yaml`,
    )
    .action(updateTool);
  addOperationCommand(tools, ['remove', 'removeTool'], {
    description: 'remove a tool from a server; its definition stays in the server versions',
    positionals: { slug: undefined, tool: undefined },
    getConfirmation: ({ slug, tool }) => ({
      effect: `remove the tool ${tool} of the server ${slug}`,
      confirmationWord: tool,
    }),
  });
}

async function listTools(slug: string, options: Options): Promise<void> {
  const { tools } = (await readServerWithConfig(await connect(options), slug)).config;
  if (options.json) return printJson({ tools });
  if (tools.length === 0) return print(`The server has no tools yet. Add one with: ${programName} tools add SLUG FILE`);
  print(
    formatTable(tools, {
      tool: 'name',
      method: 'method',
      url: 'url',
      '': ({ disabled }) => (disabled ? 'disabled' : ''),
    }),
  );
}

const readToolFields = (file: string) =>
  readFields(file, 'a tool; allowed: an object with tool fields such as name and url');

async function updateTool(
  slug: string,
  tool: string,
  file: string | undefined,
  options: Options & { set: readonly NamedValue[] },
): Promise<void> {
  const set = Object.fromEntries(options.set.map(([field, value]) => [field, parseFieldValue(value)]));
  const fields = { ...(file !== undefined && (await readToolFields(file))), ...set };
  if (Object.keys(fields).length === 0)
    throw new AppError('invalid', 'nothing to change. Name a file with fields, or pass --set field=value');
  await changeTool('updateTool', { ...fields, slug, tool }, options);
}

/** Parses a field value as JSON. Text that is not JSON is the value itself. */
function parseFieldValue(value: string): unknown {
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}

async function changeTool(name: 'addTool' | 'updateTool', input: Fields, options: Options): Promise<void> {
  const changed = await (await connect(options)).run(name, input as Input<typeof name>);
  if (options.json) printJson(changed);
  else printAgentText(operations[name].toAgentText?.(changed));
}

export function addSecrets(program: Command): void {
  const secrets = program.command('secrets').description('manage the secrets that replace {{NAME}} in a hosted server');
  addConnectionOptions(secrets.command('set'))
    .description('store a secret; the value is read from standard input or a hidden prompt, and never shown again')
    .argument('<slug>', 'slug of the server')
    .argument('<name>', 'NAME of {{NAME}}')
    .option('--value-file <file>', 'read the value from a file')
    // Rejected in `setSecret`, because Commander's message would repeat the value.
    .allowExcessArguments()
    .addHelpText(
      'after',
      `
The value is never an argument, because other users of the machine and the shell history would see it.
It is only sent to the hosts that the server's tools call now.

Examples:
  toolhost secrets set projects SERVICE_KEY
  pass show service-key | toolhost secrets set projects SERVICE_KEY
  toolhost secrets set projects SERVICE_KEY --value-file /run/secrets/service-key`,
    )
    .action(setSecret);
  addOperationCommand(secrets, ['list', 'listSecrets'], {
    positionals: { slug: undefined },
    formatOutput: (output, { slug }) =>
      output.secrets.length === 0
        ? `The server ${slug} has no secrets.`
        : formatTable(output.secrets, {
            name: 'name',
            'set at': 'updated_at',
            'sent to': ({ origins }) => origins.join(','),
            'used by': ({ used_by }) => used_by.join(', ') || 'nothing',
          }),
  });
  addOperationCommand(secrets, ['delete', 'deleteSecret'], {
    positionals: { slug: undefined, name: undefined },
    getConfirmation: ({ slug, name }) => ({
      effect: `permanently delete the secret ${name} of the server ${slug}`,
      confirmationWord: name,
    }),
    formatOutput: (_deleted, { slug, name }) => `Deleted the secret ${name} of ${slug}.`,
  });
}

type SetOptions = Options & { valueFile?: string };

async function setSecret(slug: string, name: string, options: SetOptions, command: Command): Promise<void> {
  if (command.args.length > 2) {
    command.error('error: the value must not be an argument; use standard input, the prompt, or --value-file');
  }
  const client = await connect(options);
  const { stdin, stderr } = process;
  const input =
    options.valueFile !== undefined
      ? await readTextFile(options.valueFile)
      : await (stdin.isTTY ? promptHidden(`Value of ${name}: `, { input: stdin, output: stderr }) : readText(stdin));
  // Editors and `echo` end a file with a line break that is not part of the secret.
  const value = input.replace(/\r?\n$/, '');
  if (value === '') throw new AppError('invalid', `the value of ${name} is empty; nothing was stored`);
  const stored = await withFieldLabels({ slug: '<slug>', name: '<name>' }, () =>
    client.run('setSecret', { slug, name, value }),
  );
  if (options.json) return printJson(stored);
  const origins = stored.origins.join(', ') || 'no host yet, because the server has no tools';
  const usage = stored.used_by.length > 0 ? `Used by ${stored.used_by.join(', ')}.` : `Nothing uses {{${name}}} yet.`;
  print(`Stored the secret ${name} of ${slug}. It is only sent to ${origins}. ${usage}`);
}

export function addLogins(program: Command): void {
  const logins = program
    .command('logins')
    .description('list and end the logins of people at servers, including command-line logins');
  addOperationCommand(logins, ['list', 'listGrants'], {
    options: { slug: ['--server <slug>', 'only logins at this server'] },
    help: 'Examples:\n  toolhost logins list\n  toolhost logins list --server projects',
    list: 'grants',
    formatOutput: ({ grants }) =>
      grants.length === 0
        ? 'There are no logins.'
        : formatTable(grants, {
            id: 'id',
            server: 'server',
            program: 'client',
            scope: 'scope',
            status: 'status',
            since: 'created_at',
            ...lastUseColumn,
          }),
  });
  addOperationCommand(logins, ['end', 'revokeGrant'], {
    description: 'end a login immediately; its client has to ask the person to log in again',
    positionals: { id: 'login ID, grt_…' },
    help: 'Example:\n  toolhost logins end grt_… --yes',
    getConfirmation: ({ id }) => ({ effect: `permanently end the login ${id}`, confirmationWord: 'yes' }),
    formatOutput: (_result, { id }) => `Ended the login ${id}.`,
  });
}
