import type { Command } from 'commander';
import { type Input, type OperationName, type Output, operations } from '../../operations/index.ts';
import type { Operation } from '../../operations/operation.ts';
import { confirm } from '../ask.ts';
import { atPlace, connect, type OperatorPlace, type PlaceOptions } from '../connection/connect.ts';
import { pageReader, readList } from '../connection/lists.ts';
import { type RestClient, serviceTime } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  addPlaceOptions,
  type FieldFlags,
  fieldMeaning,
  fieldOption,
  type JsonOption,
  schemaOfField,
  sentenceStart,
} from '../options.ts';
import { print, printJson } from '../print.ts';

type Field<Name extends OperationName> = keyof Input<Name> & string;

/** Command that runs one operation. Omitted properties are derived from the operation catalog. */
export type OperationCommand<Name extends OperationName> = {
  /** Description in the list of commands, instead of the operation's summary. */
  about?: string;
  /** Fields that are positional arguments, in order, with a description where that of the catalog does not fit. */
  args?: { [F in Field<Name>]?: FieldArgument };
  options?: { [F in Field<Name>]?: FieldFlags };
  /** Prose and examples after the help. */
  help?: string;
  /** Name of the list in the output. All pages of it are read, with `ofPage` entries each. */
  list?: keyof Output<Name> & string;
  ofPage?: number;
  /** True for the default command of the group. */
  isDefault?: boolean;
  /** True if the command works directly on the database unless a service is named. */
  isOperator?: boolean;
  /**
   * Formats the output for people, instead of the text for agents. `now` is the time of the service or the database.
   */
  text?: (output: Output<Name>, input: Input<Name>, now: () => Promise<number>) => string | Promise<string>;
  /** Confirmation of a destructive command: its effect, and the word that the user types. */
  asks?: (input: Input<Name>) => { what: string; word: string };
};

/** Declares the command `name` of a group from the operation catalog. */
export function operationCommand<Name extends OperationName>(
  group: Command,
  [name, operationName]: readonly [name: string, operation: Name],
  declared: OperationCommand<Name>,
): Command {
  const args: { [field: string]: FieldArgument } = declared.args ?? {};
  const { about, options = {}, help, isDefault = false, isOperator, asks } = declared;
  const operation: Operation = operations[operationName];
  const command = group.command(name, { isDefault }).description(about ?? sentenceStart(operation.summary));
  if (isOperator) addPlaceOptions(command);
  else addConnectionOptions(command);
  const fields = Object.keys(args);
  for (const field of fields) addFieldArgument(command, operation, field, args[field]);
  const attributes = addFieldOptions(command, operation, options);
  if (asks) command.option('--yes', 'skip the confirmation');
  if (help !== undefined) command.addHelpText('after', `\n${help}`);
  return command.action(async () => {
    const given = command.opts<PlaceOptions & JsonOption & { yes?: true; [attribute: string]: unknown }>();
    const input = {
      ...Object.fromEntries(fields.map((field, index) => [field, command.processedArgs[index] as unknown])),
      ...givenFields(given, attributes),
    } as Input<Name>;
    if (asks) {
      const { what, word } = asks(input);
      await confirm(what, word, given);
    }
    const run = async (client: RestClient, now: OperatorPlace['now']) => {
      const output = await outputOf(client, operationName, input, declared);
      if (given.json) printJson(output);
      else print(declared.text ? await declared.text(output, input, now) : (operation.say?.(output) ?? ''));
    };
    if (isOperator) await atPlace(given, (place) => run(place as RestClient, place.now));
    else {
      const client = await connect(given);
      await run(client, () => serviceTime(client.url));
    }
  });
}

async function outputOf<Name extends OperationName>(
  client: RestClient,
  name: Name,
  input: Input<Name>,
  { list, ofPage }: Pick<OperationCommand<Name>, 'list' | 'ofPage'>,
): Promise<Output<Name>> {
  if (list === undefined) return client.run(name, input);
  const read = pageReader(client, [name, list], input);
  const entries = await readList(read, ofPage === undefined ? {} : { ofPage });
  return { [list]: entries } as Output<Name>;
}

/** Description and parser of an argument, where those of the catalog do not fit. */
type FieldArgument = string | readonly [meaning: string, read: (text: string) => unknown] | undefined;

/** Adds the argument for a field, with its name and description from the catalog. */
function addFieldArgument(command: Command, operation: Operation, field: string, given: FieldArgument): void {
  if (Array.isArray(given)) command.argument(`<${field}>`, ...(given as [string, (text: string) => unknown]));
  else command.argument(`<${field}>`, (given as string | undefined) ?? fieldMeaning(schemaOfField(operation, field)));
}

/** Adds options for operation fields. Returns a map from Commander's option attributes to the fields. */
export function addFieldOptions(
  command: Command,
  operation: Operation,
  options: { [field: string]: FieldFlags | undefined },
  least?: number,
): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [field, flags] of Object.entries(options)) {
    if (flags === undefined) continue;
    const option = fieldOption(operation, field, flags, least);
    command.addOption(option);
    attributes.set(option.attributeName(), field);
  }
  return attributes;
}

/** Collects the fields whose options were passed. */
export function givenFields(
  options: { readonly [attribute: string]: unknown },
  attributes: ReadonlyMap<string, string>,
): { [field: string]: unknown } {
  const given = [...attributes].filter(([attribute]) => options[attribute] !== undefined);
  return Object.fromEntries(given.map(([attribute, field]) => [field, options[attribute]]));
}
