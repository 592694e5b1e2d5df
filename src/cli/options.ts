import { type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { jsonSchemaOf } from '../operations/describe.ts';
import type { Operation } from '../operations/operation.ts';
import { serviceAddress } from '../setting-addresses.ts';
import { addAcceptLoss } from './accept-loss.ts';
import { refusedUsage } from './print.ts';

export type ConnectionOptions = { url?: string; key?: string; profile?: string };
export type JsonOption = { json?: true };

/** Makes a command exit with 1 instead of 2 on a usage error, because its exit code 2 means "differences found". */
export function refusesUsage(command: Command): Command {
  return command.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    throw new CommanderError(1, refusedUsage, error.message);
  });
}

export function jsonOption(): Option {
  return new Option('--json', 'print JSON');
}

const profileName = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const isProfileName = (name: string): boolean => profileName.test(name);
export const profileAdvice =
  'allowed: up to 63 lowercase letters, digits, dots, -, and _, starting with a letter or a digit';
export const urlAdvice =
  'allowed: an http:// or https:// URL with a host, optionally a port, and the base path of the service if it has one';

export function profileOption(meaning = 'profile to use (default: TOOLHOST_PROFILE or the current profile)'): Option {
  return new Option('--profile <name>', meaning).argParser((name) => {
    if (!isProfileName(name)) throw new InvalidArgumentError(profileAdvice);
    return name;
  });
}

/** Parses the base URL of a service. @throws InvalidArgumentError with the allowed form */
export function serviceUrl(text: string): string {
  const address = serviceAddress(text);
  if (address === undefined) throw new InvalidArgumentError(urlAdvice);
  return address;
}

/** Heading of the connection options in the help. */
export const connectionGroup = 'Connection options:';

const urlMeaning = 'service URL (default: TOOLHOST_URL, BASE_URL, the URL of the profile, or http://127.0.0.1:PORT)';
const keyMeaning =
  'API key (default: TOOLHOST_API_KEY, which keeps it out of process listings, or the login of the profile)';

/** Adds the options shared by all commands that talk to a running service. */
export function addConnectionOptions(command: Command): Command {
  const shared = [
    new Option('--url <url>', urlMeaning).argParser(serviceUrl),
    new Option('--key <key>', keyMeaning),
    profileOption(),
  ];
  for (const option of shared) command.addOption(option.helpGroup(connectionGroup));
  return command.addOption(jsonOption());
}

/** Adds the options of commands that work directly on the database unless a service is named. */
export function addPlaceOptions(command: Command): Command {
  return addAcceptLoss(addConnectionOptions(command)).option(
    '--workspace <id>',
    'workspace in the database (default: the local workspace)',
  );
}

/** Collects the values of a repeatable option. */
export function collectText(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Option that names the environment variables that server files may read. */
export const variableOption = [
  '--env <NAME>',
  'environment variable that the files may use as the source of a secret; repeatable',
  collectText,
] as const;

/** A `name=value` pair from the command line. */
export type NamedText = [name: string, text: string];

/** Returns a collector for a repeatable `name=value` option. */
export function collectNamed(
  allowed = 'allowed: name=value',
): (text: string, before?: readonly NamedText[]) => NamedText[] {
  return (text, before = []) => {
    const at = text.indexOf('=');
    if (at < 1) throw new InvalidArgumentError(allowed);
    return [...before, [text.slice(0, at), text.slice(at + 1)]];
  };
}

/** Returns a parser for an integer; the minimum is 1 by default. @throws InvalidArgumentError with the allowed range */
export function wholeUpTo(most: number, least = 1): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : -1;
    if (value < least || value > most)
      throw new InvalidArgumentError(`allowed: a whole number from ${least} to ${most}`);
    return value;
  };
}

/** Collects the answers to questions of an import plan, each as `name=value`. @throws InvalidArgumentError */
export function collectAnswer(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [answer] = collectNamed('allowed: name=value, with a name from the plan')(text);
  return { ...before, ...(answer && Object.fromEntries([answer])) };
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
export function fieldMeaning({ description = '' }: FieldSchema): string {
  const text = description.replace(/[;,] null [^.]*/, '').replace(/\.$/, '');
  return sentenceStart(text);
}

/** Lowercases the first letter of a description, as everywhere in the help. Keeps a word in capitals. */
export function sentenceStart(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

export function schemaOfField({ input }: Operation, field: string): FieldSchema {
  const declared = input.shape[field];
  if (!declared) throw new Error(`the operation has no field ${field}`);
  return jsonSchemaOf(declared, 'input');
}

/** Flags of an option, with a description and a parser where those of the operation catalog do not fit. */
export type FieldFlags =
  | string
  | readonly [flags: string, meaning?: string | undefined, read?: (text: string, before?: string[]) => unknown];

/**
 * Creates the option for a field of an operation. Its bounds, choices, and description come from the operation catalog.
 */
export function fieldOption(operation: Operation, field: string, given: FieldFlags, least?: number): Option {
  const [flags, meaning, read] = typeof given === 'string' ? [given] : given;
  const schema = schemaOfField(operation, field);
  const { type, minimum = 0, maximum = 0, enum: choices } = schema.anyOf?.[0] ?? schema;
  const isList = type === 'array';
  const text = meaning ?? `${fieldMeaning(schema)}${isList ? '; repeatable' : ''}`;
  const option = new Option(flags, text);
  if (choices) return option.choices(choices);
  if (read) return option.argParser(read as (text: string) => string);
  if (type === 'integer') return option.argParser(wholeUpTo(maximum, least ?? minimum));
  return isList ? option.argParser(collectText) : option;
}
