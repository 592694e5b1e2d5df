import { type Command, InvalidArgumentError } from 'commander';
import type { ContentBlock } from '../../domain/mcp.ts';
import { AppError, messageOf } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { jsonArguments, type NamedText, namedText, typedArguments } from '../input/tool-arguments.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = ConnectionOptions & {
  json?: true;
  arg?: NamedText[];
  args?: { [name: string]: unknown };
  token?: string;
};
type Outcome = Output<'callTool'>;

export function addCall(program: Command): void {
  addConnectionOptions(program.command('call'))
    .description('call a tool of a hosted server, to try it out; the upstream request is really sent')
    .argument('<slug>')
    .argument('<tool>')
    .option('--arg <name=value>', 'an argument of the tool; may be repeated', (text, before: NamedText[] = []) => [
      ...before,
      parsed(namedText, text),
    ])
    .option('--args <json>', 'arguments as one JSON object; --arg overrules it', (text) => parsed(jsonArguments, text))
    .option(
      '--token <token>',
      "token of the upstream, for servers that forward their caller's (default: TOOLHOST_TOKEN)",
    )
    .addHelpText(
      'after',
      `
Exits with 1 when the tool reports an error.

Examples:
  toolhost call weather forecast --arg city=Oslo --arg days=3
  toolhost call projects create_task --args '{"project_id": "42", "title": "Dig"}'
  TOOLHOST_TOKEN=local-example-key toolhost call projects list_projects --arg status=eq.active`,
    )
    .action(call);
}

function parsed<T>(parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}

async function call(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const properties = await propertiesOf(client, slug, tool);
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const outcome = await run(client, {
    slug,
    tool,
    arguments: { ...options.args, ...typedArguments(options.arg ?? [], properties) },
    ...(token && { token }),
  });
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
      'the server forwards the token of its caller; give one with --token or TOOLHOST_TOKEN',
    );
  }
}

/** The tool's input schema; undefined for a key that may call but not read. @throws AppError for an unknown tool */
async function propertiesOf(client: RestClient, slug: string, tool: string): Promise<{ [name: string]: unknown }> {
  const config = await readConfig(client, slug);
  if (!config) return {};
  const found = config.tools.find((candidate) => candidate.name === tool);
  if (found) {
    const { toJsonSchema } = await import('../../domain/config/input-schema.ts');
    return (toJsonSchema(found.input_schema).properties ?? {}) as { [name: string]: unknown };
  }
  const { nearestOrAll } = await import('../../domain/problems/near-names.ts');
  const advice = nearestOrAll(
    tool,
    config.tools.map(({ name }) => name),
  );
  throw new AppError('notFound', `the server ${slug} has no tool ${JSON.stringify(tool)}${advice}`);
}

type Config = { tools: { name: string; input_schema: { [name: string]: unknown } }[] };

async function readConfig(client: RestClient, slug: string): Promise<Config | undefined> {
  try {
    return (await client.run('getMcpServer', { slug })).config as Config;
  } catch (error) {
    if (error instanceof AppError && error.kind === 'forbidden') return undefined;
    throw error;
  }
}

function blockText(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource_link') return `[${block.name}, ${block.mimeType}, ${block.size} bytes: ${block.uri}]`;
  if (block.type === 'resource') {
    const { resource } = block;
    return 'text' in resource ? resource.text : binaryText('resource', resource.mimeType, resource.blob);
  }
  return binaryText(block.type, block.mimeType, block.data);
}

function binaryText(type: string, mediaType: string, base64: string): string {
  return `[${type} ${mediaType}, ${Buffer.byteLength(base64, 'base64')} bytes; --json prints it]`;
}
