import { type Input, type Operation, type OperationName, type Output, operations } from '@toolhost/server/operations';
import type { Command } from 'commander';
import { confirmAction } from '../ask.ts';
import { type FieldLabels, withFieldLabels } from '../command-terms.ts';
import { connect, type OperatorTarget, type TargetOptions, withTarget } from '../connection/connect.ts';
import { createPageReader, readList } from '../connection/lists.ts';
import { getServiceTime, type RestClient } from '../connection/rest-client.ts';
import {
  addConnectionOptions,
  addTargetOptions,
  createFieldOption,
  type FieldOption,
  formatFieldDescription,
  getFieldSchema,
  type JsonOption,
  lowercaseStart,
} from '../options.ts';
import { print, printAgentText, printJson } from '../print.ts';

type Field<Name extends OperationName> = keyof Input<Name> & string;

/** Command that runs one operation. Omitted properties are derived from the operation catalog. */
export type OperationCommand<Name extends OperationName> = {
  /** Description in the list of commands, instead of the operation's summary. */
  description?: string;
  /** Fields that are positional arguments, in order, with a description where that of the catalog does not fit. */
  positionals?: { [F in Field<Name>]?: FieldArgument };
  options?: { [F in Field<Name>]?: FieldOption };
  /** Prose and examples at the end of the help. */
  help?: string;
  /** Name of the list in the output. All pages of it are read, with `pageSize` entries each. */
  list?: keyof Output<Name> & string;
  pageSize?: number;
  /** True for the default command of the group. */
  isDefault?: boolean;
  /** True if the command works directly on the database unless a service is named. */
  isOperator?: boolean;
  /**
   * Formats the output for people, instead of the text for agents. `now` is the time of the service or the database.
   */
  formatOutput?: (output: Output<Name>, input: Input<Name>, now: () => Promise<number>) => string | Promise<string>;
  /** Confirmation of a destructive command: its effect, and the word that the user types. */
  getConfirmation?: (input: Input<Name>) => { effect: string; confirmationWord: string };
};

/** Declares the command `name` of a group from the operation catalog. */
export function addOperationCommand<Name extends OperationName>(
  group: Command,
  [name, operationName]: readonly [name: string, operation: Name],
  definition: OperationCommand<Name>,
): Command {
  const positionals: { [field: string]: FieldArgument } = definition.positionals ?? {};
  const { description, options = {}, help, isDefault = false, isOperator, getConfirmation } = definition;
  const operation: Operation = operations[operationName];
  const command = group.command(name, { isDefault }).description(description ?? lowercaseStart(operation.summary));
  if (isOperator) addTargetOptions(command);
  else addConnectionOptions(command);
  const fields = Object.keys(positionals);
  for (const field of fields) addFieldArgument(command, operation, field, positionals[field]);
  const attributes = addFieldOptions(command, operation, options);
  if (getConfirmation) command.option('--yes', 'skip the confirmation');
  if (help !== undefined) command.addHelpText('after', `\n${help}`);
  return command.action(async () => {
    const commandOptions = command.opts<TargetOptions & JsonOption & { yes?: true; [attribute: string]: unknown }>();
    const input = {
      ...Object.fromEntries(fields.map((field, index) => [field, command.processedArgs[index] as unknown])),
      ...collectFields(commandOptions, attributes),
    } as Input<Name>;
    if (getConfirmation) {
      const { effect, confirmationWord } = getConfirmation(input);
      await confirmAction(effect, confirmationWord, commandOptions);
    }
    const names = getFieldLabels(command, attributes, fields);
    const run = async (client: RestClient, now: OperatorTarget['now']) => {
      const output = await withFieldLabels(names, () => readOutput(client, operationName, input, definition));
      if (commandOptions.json) printJson(output);
      else if (definition.formatOutput) print(await definition.formatOutput(output, input, now));
      else printAgentText(operation.toAgentText?.(output));
    };
    if (isOperator) await withTarget(commandOptions, (target) => run(target as RestClient, target.now));
    else {
      const client = await connect(commandOptions);
      await run(client, () => getServiceTime(client.url));
    }
  });
}

/** Returns the option or the argument of each field. `positionals` are the fields that are arguments. */
export function getFieldLabels(
  command: Command,
  attributes: ReadonlyMap<string, string>,
  positionals: readonly string[] = [],
): FieldLabels {
  const optionNames = command.options.flatMap((option) => {
    const field = attributes.get(option.attributeName());
    return field === undefined ? [] : [[field, option.long ?? option.flags] as const];
  });
  return Object.fromEntries([...optionNames, ...positionals.map((field) => [field, `<${field}>`] as const)]);
}

async function readOutput<Name extends OperationName>(
  client: RestClient,
  name: Name,
  input: Input<Name>,
  { list, pageSize }: Pick<OperationCommand<Name>, 'list' | 'pageSize'>,
): Promise<Output<Name>> {
  if (list === undefined) return client.run(name, input);
  const read = createPageReader(client, [name, list], input);
  const entries = await readList(read, pageSize === undefined ? {} : { pageSize });
  return { [list]: entries } as Output<Name>;
}

/** Description and parser of an argument, where those of the catalog do not fit. */
type FieldArgument = string | readonly [description: string, parse: (text: string) => unknown] | undefined;

/** Adds the argument for a field, with its name and description from the catalog. */
function addFieldArgument(command: Command, operation: Operation, field: string, override: FieldArgument): void {
  if (Array.isArray(override)) command.argument(`<${field}>`, ...(override as [string, (text: string) => unknown]));
  else
    command.argument(
      `<${field}>`,
      (override as string | undefined) ?? formatFieldDescription(getFieldSchema(operation, field)),
    );
}

/** Adds options for operation fields. Returns a map from Commander's option attributes to the fields. */
export function addFieldOptions(
  command: Command,
  operation: Operation,
  options: { [field: string]: FieldOption | undefined },
  minOverride?: number,
): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [field, flagsOrOption] of Object.entries(options)) {
    if (flagsOrOption === undefined) continue;
    const option = createFieldOption(operation, field, flagsOrOption, minOverride);
    command.addOption(option);
    attributes.set(option.attributeName(), field);
  }
  return attributes;
}

/** Collects the fields whose options were passed. */
export function collectFields(
  options: { readonly [attribute: string]: unknown },
  attributes: ReadonlyMap<string, string>,
): { [field: string]: unknown } {
  const passedOptions = [...attributes].filter(([attribute]) => options[attribute] !== undefined);
  return Object.fromEntries(passedOptions.map(([attribute, field]) => [field, options[attribute]]));
}
