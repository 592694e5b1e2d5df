import { type Command, InvalidArgumentError } from 'commander';
import { AppError, messageOf } from '../../errors.ts';
import { type OneServer, oneServer } from '../connection/one-server.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { jsonArguments, type NamedText, namedText, typedArguments } from '../input/tool-arguments.ts';
import { oneLine } from '../print/print.ts';

export type ArgumentOptions = { arg?: NamedText[]; args?: { [name: string]: unknown }; view?: string };

/** The options for the arguments of a tool, and for the view that has it. */
export function addArgumentOptions(command: Command): Command {
  return command
    .option('--arg <name=value>', 'an argument of the tool; may be repeated', (text, before: NamedText[] = []) => [
      ...before,
      parsed(namedText, text),
    ])
    .option('--args <json>', 'arguments as one JSON object; --arg overrules it', (text) => parsed(jsonArguments, text))
    .option('--view <view>', 'name of a view of the server: the tool as agents get it there');
}

function parsed<T>(parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}

/** The arguments, with texts converted as the tool's schema says. @throws AppError for an unknown tool */
export async function givenArguments(
  client: RestClient,
  { slug, tool }: { slug: string; tool: string },
  { arg, args }: ArgumentOptions,
): Promise<{ [name: string]: unknown }> {
  const properties = await propertiesOf(client, slug, tool);
  return { ...args, ...typedArguments(arg ?? [], properties) };
}

/** The tool's input schema; undefined for a key that may call but not read. @throws AppError for an unknown tool */
async function propertiesOf(client: RestClient, slug: string, tool: string): Promise<{ [name: string]: unknown }> {
  const config = await readConfig(client, slug);
  if (!config) return {};
  const found = config.tools.find((candidate) => candidate.name === tool);
  if (found) {
    const { toJsonSchema } = await import('../../domain/config/input-schema.ts');
    return (toJsonSchema(found.input_schema ?? {}).properties ?? {}) as { [name: string]: unknown };
  }
  const { nearestOrAll } = await import('../../domain/problems/did-you-mean.ts');
  const { newGuesses } = await import('../../domain/problems/did-you-mean.ts');
  const advice = nearestOrAll(
    tool,
    config.tools.map(({ name }) => name),
    newGuesses(),
  );
  throw new AppError('notFound', `the server ${slug} has no tool ${JSON.stringify(tool)}${oneLine(advice)}`);
}

async function readConfig(client: RestClient, slug: string): Promise<OneServer['config'] | undefined> {
  try {
    return (await oneServer(client, slug)).config;
  } catch (error) {
    if (error instanceof AppError && error.kind === 'forbidden') return undefined;
    throw error;
  }
}
