import type { Command } from 'commander';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import { note, print, printJson } from '../print/print.ts';
import { type ArgumentOptions, addArgumentOptions, givenArguments } from './given-arguments.ts';

type Options = ConnectionOptions & ArgumentOptions & { json?: true; curl?: true };

export function addPreview(program: Command): void {
  addArgumentOptions(addConnectionOptions(program.command('preview')))
    .description('show the upstream request of a tool call, credentials masked; nothing is sent')
    .argument('<slug>', 'slug of the server')
    .argument('<tool>', 'name of the tool')
    .option('--curl', 'show it as a command line of curl')
    .addHelpText(
      'after',
      `
Examples:
  toolhost preview projects list_projects --arg status=eq.active
  toolhost preview projects create_task --args '{"title": "Dig"}' --curl`,
    )
    .action(preview);
}

async function preview(slug: string, tool: string, options: Options): Promise<void> {
  const client = await connect(options, process.env);
  const { view } = options;
  const shown = await client.run('previewToolCall', {
    slug,
    tool,
    ...(view !== undefined && { view }),
    arguments: await givenArguments(client, { slug, tool }, options),
  });
  if (options.json) return printJson(shown);
  if (shown.refused !== undefined) note(`The call would be refused: ${shown.refused}.`);
  if (options.curl) return print(shown.curl);
  const { method, url, headers, body } = shown.request;
  const head = [`${method} ${url}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  print([...head, ...(body === undefined ? [] : ['', body])].join('\n'));
}
