import { AppError } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { parseJson } from '@toolhost/json/json';
import type { ContentBlock } from '@toolhost/mcp-protocol/mcp';
import { exampleSlug, programName } from '@toolhost/server/command-line';
import type { Input, Output } from '@toolhost/server/operations';
import { toJsonSchema } from '@toolhost/tool-config/input-schema';
import { type Command, InvalidArgumentError } from 'commander';
import { connect, getServiceUrl } from '../connection/connect.ts';
import { readServerWithConfig, type ServerWithConfig } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  type ConnectionOptions,
  collectNamedValues,
  type JsonOption,
  type NamedValue,
} from '../options.ts';
import { print, printJson, printMessage, toOneLine } from '../print.ts';
import { createExampleServer } from './example-call.ts';

type Fields = { [name: string]: unknown };
type Options = ConnectionOptions &
  JsonOption & { arg?: NamedValue[]; args?: Fields; view?: string; token?: string; curl?: true };
type Outcome = Output<'callTool'>;
type ServerRecord = ServerWithConfig['server'];

export function addCall(program: Command): void {
  addToolArguments(program.command('call'))
    .description('call a tool of a hosted server; the upstream request is actually sent')
    .option('--token <token>', "upstream token, for servers that forward the caller's token (default: TOOLHOST_TOKEN)")
    .addHelpText(
      'after',
      `
Exits with 1 if the tool reports an error.

Examples:
  toolhost call weather forecast city=Oslo days=3
  toolhost call shop get_order id=42 --view support
  toolhost call projects create_task --args '{"project_id": "42", "title": "Dig"}'
  toolhost call projects list_projects status=eq.active
  TOOLHOST_TOKEN=… toolhost call crm list_contacts`,
    )
    .action(runCall);
}

export function addPreview(program: Command): void {
  addToolArguments(program.command('preview'))
    .description('show the upstream request of a tool call without sending it; credentials are masked')
    .option('--curl', 'show it as a curl command')
    .addHelpText(
      'after',
      `
Examples:
  toolhost preview projects list_projects status=eq.active
  toolhost preview projects create_task --args '{"title": "Dig"}' --curl`,
    )
    .action(runPreview);
}

/** Adds the arguments and options that select a tool, its view, and its arguments. */
function addToolArguments(command: Command): Command {
  return addConnectionOptions(command)
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .argument('[name=value...]', "tool arguments, with the types of the tool's schema", collectNamedValues())
    .option('--arg <name=value>', 'the same as an option; repeatable', collectNamedValues())
    .option('--args <json>', 'tool arguments as one JSON object; name=value takes precedence', parseJsonArguments)
    .option('--view <view>', 'name of a view of the server, to use the tool as the view exposes it');
}

/** Parses a JSON object. @throws InvalidArgumentError with the allowed form */
export function parseJsonArguments(text: string): Fields {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    value = undefined;
  }
  if (isObject(value) && !Array.isArray(value)) return value;
  throw new InvalidArgumentError(`allowed: a JSON object, such as '{"id": 42}'`);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

async function runCall(slug: string, tool: string, pairs: NamedValue[] | undefined, options: Options): Promise<void> {
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const client = await connect(options).catch((error: unknown) => {
    if (slug !== exampleSlug || token || !(error instanceof AppError) || error.kind !== 'unauthenticated') throw error;
    return error;
  });
  if (client instanceof AppError) return callExample(tool, pairs, options, client);
  const { input, server } = await buildCallInput(client, { slug, tool, pairs }, options);
  const sentToken = token || server?.example_token;
  const outcome = await callTool(client, { ...input, ...(sentToken && { token: sentToken }) }, server);
  if (options.json) printJson(outcome);
  else print(outcome.content.map(formatBlock).join('\n'));
  if (outcome.left_out !== undefined) printMessage(outcome.left_out);
  if (outcome.is_error) process.exitCode = 1;
}

/** Calls a tool of the example server, for which no key is needed. @throws the error of the connection without one */
async function callExample(
  tool: string,
  pairs: NamedValue[] = [],
  { arg = [], args, url, view, json }: Options,
  connectionError: AppError,
): Promise<void> {
  const example = createExampleServer(url ?? getServiceUrl());
  const tools = view === undefined ? await example.listTools() : undefined;
  if (!tools) throw connectionError;
  const definition = tools.find(({ name }) => name === tool);
  if (!definition) throw createUnknownToolError(exampleSlug, tool, tools);
  const properties = definition.inputSchema.properties ?? {};
  const result = await example.call(tool, { ...args, ...parseArguments([...pairs, ...arg], properties) });
  if (json) printJson(result);
  else print(result.content.map(formatBlock).join('\n'));
  if (result.isError) process.exitCode = 1;
}

async function callTool(
  client: RestClient,
  input: Input<'callTool'>,
  server: ServerRecord | undefined,
): Promise<Outcome> {
  try {
    return await client.run('callTool', input);
  } catch (error) {
    if (!(error instanceof AppError) || !error.problems.some(({ path }) => path === 'token')) throw error;
    const advice =
      server?.access === 'oauth' || server?.access === 'passthrough'
        ? `the server ${server.slug} has a login. Log in and call the tool with: ${programName} doctor ${server.url} --login --call ${input.tool}`
        : 'the server forwards the token of its caller. Pass one with --token or TOOLHOST_TOKEN';
    throw new AppError(error.kind, advice);
  }
}

function formatBlock(block: ContentBlock): string {
  if (block.type === 'text') return indentIfJson(block.text);
  if (block.type === 'resource_link') return `[${block.name}, ${block.mimeType}, ${block.size} bytes: ${block.uri}]`;
  if (block.type === 'resource') {
    const { resource } = block;
    return 'text' in resource ? resource.text : formatBinary('resource', resource.mimeType, resource.blob);
  }
  return formatBinary(block.type, block.mimeType, block.data);
}

/** Indents JSON at a terminal. Piped output and text that is not JSON stay unchanged. */
function indentIfJson(text: string): string {
  if (!process.stdout.isTTY || !/^\s*[{[]/.test(text)) return text;
  try {
    return JSON.stringify(parseJson(text), undefined, 2);
  } catch {
    return text;
  }
}

function formatBinary(type: string, mediaType: string, base64: string): string {
  return `[${type} ${mediaType}, ${Buffer.byteLength(base64, 'base64')} bytes; --json prints it]`;
}

async function runPreview(
  slug: string,
  tool: string,
  pairs: NamedValue[] | undefined,
  options: Options,
): Promise<void> {
  const client = await connect(options);
  const { input } = await buildCallInput(client, { slug, tool, pairs }, options);
  const result = await client.run('previewToolCall', input);
  if (options.json) return printJson(result);
  if (result.refused !== undefined) printMessage(`The call would be refused: ${result.refused}.`);
  if (options.curl) return print(result.curl);
  const { method, url, headers, body } = result.request;
  const headLines = [`${method} ${url}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  print([...headLines, ...(body === undefined ? [] : ['', body])].join('\n'));
}

/**
 * Builds the input of a call, with arguments converted according to the tool's schema.
 * @throws AppError for an unknown tool
 */
async function buildCallInput(
  client: RestClient,
  { slug, tool, pairs = [] }: { slug: string; tool: string; pairs: NamedValue[] | undefined },
  { arg = [], args, view }: Options,
): Promise<{ input: Input<'previewToolCall'>; server: ServerRecord | undefined }> {
  const stored = await readServer(client, slug);
  const properties = stored ? getInputProperties(stored, slug, tool) : {};
  const callArguments = { ...args, ...parseArguments([...pairs, ...arg], properties) };
  const input = { slug, tool, ...(view !== undefined && { view }), arguments: callArguments };
  return { input, server: stored?.server };
}

/** Returns the properties of the tool's input schema. @throws AppError for an unknown tool */
function getInputProperties({ config }: ServerWithConfig, slug: string, tool: string): Fields {
  const definition = config.tools.find(({ name }) => name === tool);
  if (!definition) throw createUnknownToolError(slug, tool, config.tools);
  return (toJsonSchema(definition.input_schema ?? {}).properties ?? {}) as Fields;
}

function createUnknownToolError(slug: string, tool: string, tools: readonly { name: string }[]): AppError {
  const names = tools.map(({ name }) => name);
  const advice = toOneLine(suggestNearestOrList(tool, names, createSuggestionBudget()));
  return new AppError('notFound', `the server ${slug} has no tool ${JSON.stringify(tool)}${advice}`);
}

/** Reads the server; undefined for a key without read access. */
async function readServer(client: RestClient, slug: string): Promise<ServerWithConfig | undefined> {
  try {
    return await readServerWithConfig(client, slug);
  } catch (error) {
    if (error instanceof AppError && error.kind === 'forbidden') return undefined;
    throw error;
  }
}

type PropertySchema = { type?: unknown; items?: unknown };

/**
 * Converts argument strings to values. If the schema requires something other than a string, the string is parsed as
 * JSON. Invalid JSON stays a string, so that the service reports what it allows. A repeated argument becomes an array.
 */
function parseArguments(argumentPairs: readonly NamedValue[], properties: Fields): Fields {
  const grouped = Map.groupBy(argumentPairs, ([name]) => name);
  return Object.fromEntries(
    [...grouped].map(([name, pairs]) => {
      const schema = asPropertySchema(Object.hasOwn(properties, name) ? properties[name] : undefined);
      const values = pairs.map(([, value]) => value);
      return [name, parseArgument(values, schema)];
    }),
  );
}

function parseArgument(values: readonly string[], schema: PropertySchema): unknown {
  const [firstValue = ''] = values;
  const isArray = [schema.type].flat().includes('array');
  if (values.length === 1 && (!isArray || firstValue.trimStart().startsWith('[')))
    return parseValue(firstValue, schema);
  return values.map((value) => parseValue(value, isArray ? asPropertySchema(schema.items) : schema));
}

function asPropertySchema(value: unknown): PropertySchema {
  return isObject(value) ? value : {};
}

function parseValue(text: string, { type }: PropertySchema): unknown {
  if (type === undefined || [type].flat().includes('string')) return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
