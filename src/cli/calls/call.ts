import type { Command } from 'commander';
import type { ContentBlock } from '../../domain/mcp.ts';
import { AppError } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { note, print, printJson } from '../print/print.ts';
import { type ArgumentOptions, addArgumentOptions, givenArguments } from './given-arguments.ts';

type Options = ConnectionOptions & ArgumentOptions & { json?: true; token?: string };
type Outcome = Output<'callTool'>;

export function addCall(program: Command): void {
  addArgumentOptions(addConnectionOptions(program.command('call')))
    .description('call a tool of a hosted server, to try it out; the upstream request is really sent')
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
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
  toolhost call shop get_order --view support --arg id=42
  toolhost call projects create_task --args '{"project_id": "42", "title": "Dig"}'
  TOOLHOST_TOKEN=local-example-key toolhost call projects list_projects --arg status=eq.active`,
    )
    .action(call);
}

async function call(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const token = options.token ?? process.env.TOOLHOST_TOKEN;
  const outcome = await run(client, {
    slug,
    tool,
    ...(options.view !== undefined && { view: options.view }),
    arguments: await givenArguments(client, { slug, tool }, options),
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
