import { type Command, InvalidArgumentError } from 'commander';
import { parseJson } from '../../domain/json/json.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { AppError } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import { programName } from '../../version.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { oneServer } from '../connection/one-server.ts';
import { readConfigFile } from '../input/config-file.ts';
import { type NamedText, namedText } from '../input/tool-arguments.ts';
import { print, printJson, table } from '../print/print.ts';

type Options = ConnectionOptions & { json?: true };
type Fields = { [field: string]: unknown };

export function addTools(program: Command): void {
  const tools = program.command('tools').description('manage the tools of a hosted server, one at a time');
  addConnectionOptions(tools.command('list'))
    .description('list the tools of a server')
    .argument('<slug>', 'slug of the server')
    .action(list);
  addConnectionOptions(tools.command('add'))
    .description('add a tool to a server')
    .argument('<slug>', 'slug of the server')
    .argument('<file>', 'the tool as JSON or YAML; - reads standard input')
    .addHelpText('after', '\nExample:\n  toolhost tools add projects tool.yaml')
    .action(add);
  addConnectionOptions(tools.command('update'))
    .description('change fields of a tool; the others stay as they are')
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .argument('[file]', 'the changed fields as JSON or YAML; - reads standard input')
    .option('--set <field=value>', 'one field; the value is JSON, or else a text; null removes it', collect, [])
    .addHelpText(
      'after',
      `
A field replaces the stored one as a whole. The field name renames the tool.

Examples:
  toolhost tools update projects list_projects --set timeout_ms=5000 --set response_fields=null
  toolhost tools update projects list_projects changes.yaml`,
    )
    .action(update);
  addConnectionOptions(tools.command('remove'))
    .description('remove a tool from a server; "servers get" and the versions in the dashboard show what it was')
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .action(remove);
}

function collect(argument: string, before: readonly NamedText[]): NamedText[] {
  try {
    return [...before, namedText(argument)];
  } catch {
    throw new InvalidArgumentError('allowed: field=value');
  }
}

async function list(slug: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const { tools } = (await oneServer(client, slug)).config;
  if (options.json) return printJson({ tools });
  if (tools.length === 0) return print(`The server has no tools yet; add one with: ${programName} tools add SLUG FILE`);
  const rows = tools.map((tool) => [tool.name, tool.method, tool.url, tool.disabled ? 'disabled' : '']);
  print(table(['TOOL', 'METHOD', 'URL', ''], rows));
}

async function add(slug: string, file: string, options: Options): Promise<void> {
  const fields = await fieldsFrom(file);
  const client = await connect(options, process.env);
  // The service validates the fields.
  const input: Fields = { ...fields, slug };
  await show('addTool', options, await client.run('addTool', input as Input<'addTool'>));
}

async function update(
  slug: string,
  tool: string,
  file: string | undefined,
  options: Options & { set: readonly NamedText[] },
): Promise<void> {
  const fields = file === undefined ? {} : await fieldsFrom(file);
  const set = Object.fromEntries(options.set.map(([field, text]) => [field, fieldValue(text)]));
  if (Object.keys({ ...fields, ...set }).length === 0) {
    throw new AppError('invalid', 'there is nothing to change; name a file with fields, or give --set field=value');
  }
  const client = await connect(options, process.env);
  const input: Fields = { ...fields, ...set, slug, tool };
  await show('updateTool', options, await client.run('updateTool', input as Input<'updateTool'>));
}

async function remove(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  await show('removeTool', options, await client.run('removeTool', { slug, tool }));
}

type Change = 'addTool' | 'updateTool' | 'removeTool';

async function show(name: Change, options: Options, changed: Output<Change>): Promise<void> {
  if (options.json) return printJson(changed);
  const { operations } = await import('../../operations/index.ts');
  print(operations[name].say?.(changed) ?? '');
}

async function fieldsFrom(file: string): Promise<Fields> {
  const value = await readConfigFile(file);
  const foreign = foreignDocument(value);
  if (foreign !== undefined) throw new AppError('invalid', `${file}: ${foreign}`);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new AppError(
    'invalid',
    `${file}: is not a tool; allowed: an object with fields of a tool, such as name and url`,
  );
}

/** A text that is not JSON is the value itself. */
function fieldValue(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
