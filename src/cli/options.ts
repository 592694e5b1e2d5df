import { type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { jsonSchemaOf } from '../operations/describe.ts';
import type { Operation } from '../operations/operation.ts';
import { serviceAddress } from '../setting-addresses.ts';
import { addAcceptLoss } from './accept-loss.ts';
import { refusedUsage } from './print.ts';

export type ConnectionOptions = { url?: string; key?: string; profile?: string };
export type JsonOption = { json?: true };

/** Makes a command end with 1 instead of 2 when it is used wrongly, because its 2 means that something differs. */
export function refusesUsage(command: Command): Command {
  return command.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    throw new CommanderError(1, refusedUsage, error.message);
  });
}

export function jsonOption(): Option {
  return new Option('--json', 'print JSON for a program to read');
}

const profileName = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const isProfileName = (name: string): boolean => profileName.test(name);
export const profileAdvice = 'allowed: up to 63 small letters, digits, dots, - and _, with a letter or a digit first';
export const urlAdvice = 'allowed: http:// or https://, a host, a port, and the path of the service where it has one';

export function profileOption(meaning = 'profile to use (default: TOOLHOST_PROFILE, or the current one)'): Option {
  return new Option('--profile <name>', meaning).argParser((name) => {
    if (!isProfileName(name)) throw new InvalidArgumentError(profileAdvice);
    return name;
  });
}

/** Reads the address of a service. @throws InvalidArgumentError, which says what is allowed */
export function serviceUrl(text: string): string {
  const address = serviceAddress(text);
  if (address === undefined) throw new InvalidArgumentError(urlAdvice);
  return address;
}

/** Heading of these options in the help. */
export const connectionGroup = 'Which service, and with which credential:';

const urlMeaning =
  'address of the service (default: TOOLHOST_URL, BASE_URL, that of the profile, or http://127.0.0.1:PORT)';
const keyMeaning =
  'API key (default: TOOLHOST_API_KEY, which keeps it out of lists of processes, or the login of the profile)';

/** The options of every command that talks to a running service. */
export function addConnectionOptions(command: Command): Command {
  const shared = [
    new Option('--url <url>', urlMeaning).argParser(serviceUrl),
    new Option('--key <key>', keyMeaning),
    profileOption(),
  ];
  for (const option of shared) command.addOption(option.helpGroup(connectionGroup));
  return command.addOption(jsonOption());
}

/** The options of commands that work directly on the database unless a service is named. */
export function addPlaceOptions(command: Command): Command {
  return addAcceptLoss(addConnectionOptions(command)).option(
    '--workspace <id>',
    'workspace of the database that it is about (default: the local one)',
  );
}

/** An option that may be given several times, each time with a text. */
export function collectText(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** The option that names the variables which files of servers may have. */
export const variableOption = [
  '--env <NAME>',
  'variable that the files may have as a source of a secret; may be given several times',
  collectText,
] as const;

/** `name=value` as given. */
export type NamedText = [name: string, text: string];

/** Reads options that may be given several times, each time as `name=value`. */
export function collectNamed(
  allowed = 'allowed: name=value',
): (text: string, before?: readonly NamedText[]) => NamedText[] {
  return (text, before = []) => {
    const at = text.indexOf('=');
    if (at < 1) throw new InvalidArgumentError(allowed);
    return [...before, [text.slice(0, at), text.slice(at + 1)]];
  };
}

/** Reads a whole number, by default from 1. @throws InvalidArgumentError, which says what is allowed */
export function wholeUpTo(most: number, least = 1): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : -1;
    if (value < least || value > most)
      throw new InvalidArgumentError(`allowed: a whole number from ${least} to ${most}`);
    return value;
  };
}

/** An option that may be given several times, each time as `name=value`. @throws InvalidArgumentError */
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

/** What the catalogue says of a field of an operation, as text of a help: what `null` does is for programs. */
export function fieldMeaning({ description = '' }: FieldSchema): string {
  const text = description.replace(/[;,] null [^.]*/, '').replace(/\.$/, '');
  return sentenceStart(text);
}

/** Begins a text of the catalogue like all texts of a help; a word in capitals stays. */
export function sentenceStart(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

export function schemaOfField({ input }: Operation, field: string): FieldSchema {
  const declared = input.shape[field];
  if (!declared) throw new Error(`the operation has no field ${field}`);
  return jsonSchemaOf(declared, 'input');
}

/** The flags of an option and, where that of the catalogue does not fit, its meaning and how its text is read. */
export type FieldFlags =
  | string
  | readonly [flags: string, meaning?: string | undefined, read?: (text: string, before?: string[]) => unknown];

/** The option for a field of an operation: its bounds, its choices and its meaning are those of the catalogue. */
export function fieldOption(operation: Operation, field: string, given: FieldFlags, least?: number): Option {
  const [flags, meaning, read] = typeof given === 'string' ? [given] : given;
  const schema = schemaOfField(operation, field);
  const { type, minimum = 0, maximum = 0, enum: choices } = schema.anyOf?.[0] ?? schema;
  const isList = type === 'array';
  const text = meaning ?? `${fieldMeaning(schema)}${isList ? '; may be given several times' : ''}`;
  const option = new Option(flags, text);
  if (choices) return option.choices(choices);
  if (read) return option.argParser(read as (text: string) => string);
  if (type === 'integer') return option.argParser(wholeUpTo(maximum, least ?? minimum));
  return isList ? option.argParser(collectText) : option;
}
