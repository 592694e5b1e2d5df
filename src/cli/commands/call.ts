import { type Command, InvalidArgumentError } from 'commander';
import { toJsonSchema } from '../../domain/config/input-schema.ts';
import { parseJson } from '../../domain/json/json.ts';
import type { ContentBlock } from '../../domain/mcp.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems.ts';
import { AppError } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { type OneServer, oneServer } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  type ConnectionOptions,
  collectNamed,
  type JsonOption,
  type NamedText,
} from '../options.ts';
import { note, oneLine, print, printJson } from '../print.ts';

type Fields = { [name: string]: unknown };
type Options = ConnectionOptions &
  JsonOption & { arg?: NamedText[]; args?: Fields; view?: string; token?: string; curl?: true };
type Outcome = Output<'callTool'>;

export function addCall(program: Command): void {
  addArguments(program.command('call'))
    .description('call a tool of a hosted server; the upstream request is actually sent')
    .option('--token <token>', "upstream token, for servers that forward the caller's token (default: TOOLHOST_TOKEN)")
    .addHelpText(
      'after',
      `
Exits with 1 if the tool reports an error.

Examples:
  toolhost call weather forecast --arg city=Oslo --arg days=3
  toolhost call shop get_order --view support --arg id=42
  toolhost call projects create_task --args '{"project_id": "42", "title": "Dig"}'
  TOOLHOST_TOKEN=local-example-key toolhost call projects list_projects --arg status=eq.active`,
    )
    .action(call);
}

export function addPreview(program: Command): void {
  addArguments(program.command('preview'))
    .description('show the upstream request of a tool call without sending it; credentials are masked')
    .option('--curl', 'show it as a curl command')
    .addHelpText(
      'after',
      `
Examples:
  toolhost preview projects list_projects --arg status=eq.active
  toolhost preview projects create_task --args '{"title": "Dig"}' --curl`,
    )
    .action(preview);
}

/** Adds the arguments and options that select a tool, its view, and its arguments. */
function addArguments(command: Command): Command {
  return addConnectionOptions(command)
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .option('--arg <name=value>', 'tool argument; repeatable', collectNamed())
    .option('--args <json>', 'tool arguments as one JSON object; --arg takes precedence', jsonArguments)
    .option('--view <view>', 'name of a view of the server, to use the tool as the view exposes it');
}

/** Parses a JSON object. @throws InvalidArgumentError with the allowed form */
export function jsonArguments(text: string): Fields {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    value = undefined;
  }
  if (isFields(value) && !Array.isArray(value)) return value;
  throw new InvalidArgumentError(`allowed: a JSON object, such as '{"id": 42}'`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

async function call(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options);
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const input = await calledWith(client, { slug, tool }, options);
  const outcome = await run(client, { ...input, ...(token && { token }) });
  if (options.json) printJson(outcome);
  else print(outcome.content.map(blockText).join('\n'));
  if (outcome.left_out !== undefined) note(outcome.left_out);
  if (outcome.is_error) process.exitCode = 1;
}

async function run(client: RestClient, input: Input<'callTool'>): Promise<Outcome> {
  try {
    return await client.run('callTool', input);
  } catch (error) {
    if (!(error instanceof AppError) || !error.problems.some(({ path }) => path === 'token')) throw error;
    throw new AppError(
      error.kind,
      'the server forwards the token of its caller. Pass one with --token or TOOLHOST_TOKEN',
    );
  }
}

function blockText(block: ContentBlock): string {
  if (block.type === 'text') return readable(block.text);
  if (block.type === 'resource_link') return `[${block.name}, ${block.mimeType}, ${block.size} bytes: ${block.uri}]`;
  if (block.type === 'resource') {
    const { resource } = block;
    return 'text' in resource ? resource.text : binaryText('resource', resource.mimeType, resource.blob);
  }
  return binaryText(block.type, block.mimeType, block.data);
}

/** Indents JSON at a terminal. Piped output and text that is not JSON stay unchanged. */
function readable(text: string): string {
  if (!process.stdout.isTTY || !/^\s*[{[]/.test(text)) return text;
  try {
    return JSON.stringify(parseJson(text), undefined, 2);
  } catch {
    return text;
  }
}

function binaryText(type: string, mediaType: string, base64: string): string {
  return `[${type} ${mediaType}, ${Buffer.byteLength(base64, 'base64')} bytes; --json prints it]`;
}

async function preview(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options);
  const shown = await client.run('previewToolCall', await calledWith(client, { slug, tool }, options));
  if (options.json) return printJson(shown);
  if (shown.refused !== undefined) note(`The call would be refused: ${shown.refused}.`);
  if (options.curl) return print(shown.curl);
  const { method, url, headers, body } = shown.request;
  const head = [`${method} ${url}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  print([...head, ...(body === undefined ? [] : ['', body])].join('\n'));
}

/**
 * Builds the input of a call, with arguments converted according to the tool's schema.
 * @throws AppError for an unknown tool
 */
async function calledWith(
  client: RestClient,
  { slug, tool }: { slug: string; tool: string },
  { arg = [], args, view }: Options,
): Promise<Input<'previewToolCall'>> {
  const properties = await propertiesOf(client, slug, tool);
  const given = { ...args, ...typedArguments(arg, properties) };
  return { slug, tool, ...(view !== undefined && { view }), arguments: given };
}

/**
 * Reads the properties of the tool's input schema; none for a key without read access.
 * @throws AppError for an unknown tool
 */
async function propertiesOf(client: RestClient, slug: string, tool: string): Promise<Fields> {
  const config = await readConfig(client, slug);
  if (!config) return {};
  const found = config.tools.find(({ name }) => name === tool);
  if (found) return (toJsonSchema(found.input_schema ?? {}).properties ?? {}) as Fields;
  const names = config.tools.map(({ name }) => name);
  const advice = oneLine(nearestOrAll(tool, names, newGuesses()));
  throw new AppError('notFound', `the server ${slug} has no tool ${JSON.stringify(tool)}${advice}`);
}

async function readConfig(client: RestClient, slug: string): Promise<OneServer['config'] | undefined> {
  try {
    return (await oneServer(client, slug)).config;
  } catch (error) {
    if (error instanceof AppError && error.kind === 'forbidden') return undefined;
    throw error;
  }
}

type Definition = { type?: unknown; items?: unknown };

/**
 * Converts argument strings to values. If the schema requires something other than a string, the string is parsed as
 * JSON. Invalid JSON stays a string, so that the service reports what it allows. A repeated argument becomes an array.
 */
function typedArguments(texts: readonly NamedText[], properties: Fields): Fields {
  const grouped = Map.groupBy(texts, ([name]) => name);
  return Object.fromEntries(
    [...grouped].map(([name, pairs]) => {
      const definition = asDefinition(Object.hasOwn(properties, name) ? properties[name] : undefined);
      return [
        name,
        argumentOf(
          pairs.map(([, text]) => text),
          definition,
        ),
      ];
    }),
  );
}

function argumentOf(texts: readonly string[], definition: Definition): unknown {
  const [only = ''] = texts;
  const isArray = [definition.type].flat().includes('array');
  if (texts.length === 1 && (!isArray || only.trimStart().startsWith('['))) return typed(only, definition);
  return texts.map((text) => typed(text, isArray ? asDefinition(definition.items) : definition));
}

function asDefinition(value: unknown): Definition {
  return isFields(value) ? value : {};
}

function typed(text: string, { type }: Definition): unknown {
  if (type === undefined || [type].flat().includes('string')) return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
