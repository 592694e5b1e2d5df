import { parseServiceUrl } from '@toolhost/server/command-line';
import type { Operation } from '@toolhost/server/operations';
import { type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { addAcceptLossOption } from './accept-loss.ts';
import { usageErrorCode } from './print.ts';

export type ConnectionOptions = { url?: string; key?: string; profile?: string };
export type JsonOption = { json?: true };

/** Makes a command exit with 1 instead of 2 on a usage error, because its exit code 2 means "differences found". */
export function exitWithOneOnUsageError(command: Command): Command {
  return command.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    throw new CommanderError(1, usageErrorCode, error.message);
  });
}

export function createJsonOption(): Option {
  return new Option('--json', 'print JSON');
}

export const isValidProfileName = (name: string): boolean => /^[a-z0-9][a-z0-9._-]{0,62}$/.test(name);
export const profileNameRule =
  'allowed: up to 63 lowercase letters, digits, dots, -, and _, starting with a letter or a digit';
export const serviceUrlRule =
  'allowed: an http:// or https:// URL with a host, optionally a port, and the base path of the service if it has one';

export function createProfileOption(
  description = 'profile to use (default: TOOLHOST_PROFILE or the current profile)',
): Option {
  return new Option('--profile <name>', description).argParser((name) => {
    if (!isValidProfileName(name)) throw new InvalidArgumentError(profileNameRule);
    return name;
  });
}

/** Parses the base URL of a service. @throws InvalidArgumentError with the allowed form */
export function parseServiceUrlOption(text: string): string {
  const url = parseServiceUrl(text);
  if (url === undefined) throw new InvalidArgumentError(serviceUrlRule);
  return url;
}

export const connectionOptionsHeading = 'Connection options:';

const urlDescription =
  'service URL (default: TOOLHOST_URL, BASE_URL, the URL of the profile, or http://127.0.0.1:PORT)';
const keyDescription =
  'API key (default: TOOLHOST_API_KEY, which keeps it out of process listings, or the login of the profile)';

/** Adds the options shared by all commands that talk to a running service. */
export function addConnectionOptions(command: Command): Command {
  const connectionOptions = [
    new Option('--url <url>', urlDescription).argParser(parseServiceUrlOption),
    new Option('--key <key>', keyDescription),
    createProfileOption(),
  ];
  for (const option of connectionOptions) command.addOption(option.helpGroup(connectionOptionsHeading));
  return command.addOption(createJsonOption());
}

/** Adds the options of commands that work directly on the database unless a service is named. */
export function addTargetOptions(command: Command): Command {
  return addAcceptLossOption(addConnectionOptions(command)).option(
    '--workspace <id>',
    'workspace in the database (default: the local workspace)',
  );
}

/** Collects the values of a repeatable option. */
export function collectValue(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

/** Option for the environment variables that server files may read. */
export const envOption = [
  '--env <NAME>',
  'environment variable that the files may use as the source of a secret; repeatable',
  (name: string, previous?: readonly string[]) => {
    if (!/^[A-Za-z_]\w*$/.test(name))
      throw new InvalidArgumentError('allowed: the name of an environment variable, such as API_KEY');
    return collectValue(name, previous);
  },
] as const;

/** A `name=value` pair from the command line. */
export type NamedValue = [name: string, text: string];

/** Returns a collector for a repeatable `name=value` option. */
export function collectNamedValues(
  allowedForms = 'allowed: name=value',
): (pair: string, previous?: readonly NamedValue[]) => NamedValue[] {
  return (pair, previous = []) => {
    const separatorIndex = pair.indexOf('=');
    if (separatorIndex < 1) throw new InvalidArgumentError(allowedForms);
    return [...previous, [pair.slice(0, separatorIndex), pair.slice(separatorIndex + 1)]];
  };
}

/** Returns a parser for an integer; the minimum is 1 by default. @throws InvalidArgumentError with the allowed range */
export function parseIntegerUpTo(max: number, min = 1): (value: string) => number {
  return (input) => {
    const value = /^\d{1,10}$/.test(input) ? Number(input) : -1;
    if (value < min || value > max) throw new InvalidArgumentError(`allowed: a whole number from ${min} to ${max}`);
    return value;
  };
}

/** Collects the answers to questions of an import plan, each as `name=value`. @throws InvalidArgumentError */
export function collectPlanAnswer(pair: string, previous: Record<string, string> = {}): Record<string, string> {
  const answers = collectNamedValues('allowed: name=value, with a name from the plan')(pair);
  return { ...previous, ...Object.fromEntries(answers) };
}

type FieldSchema = {
  type?: string;
  description?: string;
  minimum?: number;
  maximum?: number;
  enum?: string[];
  anyOf?: FieldSchema[];
};

/**
 * Formats the description of an operation field for the help. Drops the effect of `null`, which only matters to API
 * clients.
 */
export function formatFieldDescription({ description = '' }: FieldSchema): string {
  const help = description.replace(/[;,] null [^.]*/, '').replace(/\.$/, '');
  return lowercaseStart(help);
}

/** Lowercases the first letter, as in all descriptions of the help. An acronym such as URL keeps its capitals. */
export function lowercaseStart(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

export function getFieldSchema(operation: Operation, field: string): FieldSchema {
  const { properties = {} } = operation.inputSchema() as { properties?: Record<string, FieldSchema> };
  const schema = properties[field];
  if (!schema) throw new Error(`the operation has no field ${field}`);
  return schema;
}

/** Flags of an option, with a description and a parser where those of the operation catalog do not fit. */
export type FieldOption =
  | string
  | readonly [flags: string, description?: string | undefined, parse?: (value: string, previous?: string[]) => unknown];

/**
 * Creates the option for a field of an operation. Its bounds, choices, and description come from the operation catalog.
 * `minOverride` replaces the minimum of the catalog.
 */
export function createFieldOption(
  operation: Operation,
  field: string,
  flagsOrOption: FieldOption,
  minOverride?: number,
): Option {
  const [flags, description, parse] = typeof flagsOrOption === 'string' ? [flagsOrOption] : flagsOrOption;
  const schema = getFieldSchema(operation, field);
  // The first alternative of a nullable field is its value, the other one is null.
  const { type, minimum = 0, maximum = 0, enum: allowedValues } = schema.anyOf?.[0] ?? schema;
  const isList = type === 'array';
  const help = description ?? `${formatFieldDescription(schema)}${isList ? '; repeatable' : ''}`;
  const option = new Option(flags, help);
  if (allowedValues) return option.choices(allowedValues);
  if (parse) return option.argParser(parse as (text: string) => string);
  if (type === 'integer') return option.argParser(parseIntegerUpTo(maximum, minOverride ?? minimum));
  return isList ? option.argParser(collectValue) : option;
}
