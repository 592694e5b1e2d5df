import type { Argument, Command, Option } from 'commander';
import { connectionOf } from '../connection/connect.ts';
import { oneServer } from '../connection/lists.ts';
import { createRestClient, type RestClient } from '../connection/rest-client.ts';
import { configFolder, readProfiles } from '../profiles/profiles.ts';

/** A completion candidate and its description. */
type Candidate = { word: string; meaning: string };

/** Candidates, or `files` to let the shell complete file names. */
type Completion = 'files' | readonly Candidate[];

/** Values on the command line: options by attribute name, arguments by name. */
type Given = ReadonlyMap<string, string>;

/** Returns the completion candidates for the word under the cursor, in declaration order. */
export async function completionOf(program: Command, words: readonly string[]): Promise<Completion> {
  const { expected, given, current, prefix } = readWords(program, words);
  const found = await fitting(expected, given);
  if (found === 'files') return found;
  return found
    .filter(({ word }) => word.startsWith(current))
    .map(({ word, meaning }) => ({ word: prefix + word, meaning }));
}

async function fitting(expected: ExpectedWord, given: Given): Promise<Completion> {
  switch (expected.kind) {
    case 'command': {
      const { command, argument } = expected;
      const commands = command.createHelp().visibleCommands(command);
      const usual = await ofArgument(argument, given);
      const words = commands.map((one) => ({ word: one.name(), meaning: one.description() }));
      return [...words, ...(usual === 'files' ? [] : usual)];
    }
    case 'option': {
      const { command } = expected;
      const options = command.createHelp().visibleOptions(command);
      return options.map(({ long, description }) => ({ word: long ?? '', meaning: description }));
    }
    case 'argument':
      return ofArgument(expected.argument, given);
    case 'value':
      return ofOption(expected.option, given);
  }
}

async function ofArgument(argument: Argument | undefined, given: Given): Promise<Completion> {
  if (!argument) return [];
  return choicesOf(argument) ?? ofName(argument.name(), given);
}

async function ofOption(option: Option, given: Given): Promise<Completion> {
  const placeholder = /[<[]([\w|-]+)/.exec(option.flags)?.[1] ?? '';
  const names: { [long: string]: string } = { '--profile': 'profile', '--server': 'slug', '--tool': 'tool' };
  return choicesOf(option) ?? ofName(names[option.long ?? ''] ?? placeholder, given);
}

function choicesOf({ argChoices }: Argument | Option): Candidate[] | undefined {
  return argChoices?.map((word) => ({ word, meaning: '' }));
}

/** Returns candidates for an argument or an option value by its declared name. */
async function ofName(name: string, given: Given): Promise<Completion> {
  if (/^(file|dir|folder)\b/.test(name)) return 'files';
  if (name === 'slug') return slugs(given);
  if (name === 'profile') return [...readProfiles(configFolder()).urls].map(([word, meaning]) => ({ word, meaning }));
  const slug = given.get('slug') ?? given.get('server');
  return name === 'tool' && slug !== undefined ? tools(slug, given) : [];
}

/** Request timeout; the user is waiting at the prompt. */
const patienceMs = 1500;

async function client(given: Given): Promise<RestClient> {
  const options = Object.fromEntries([...given].filter(([name]) => ['url', 'key', 'profile'].includes(name)));
  const { url, credential } = await connectionOf(options);
  // Tokens are not renewed here, because that could exceed the timeout.
  return createRestClient({ url, credential: { token: credential.token } }, patienceMs);
}

async function slugs(given: Given): Promise<Candidate[]> {
  const { servers } = await (await client(given)).run('listMcpServers', { limit: 200 });
  return servers.map(({ slug, name }) => ({ word: slug, meaning: name })).filter(isPlain);
}

async function tools(slug: string, given: Given): Promise<Candidate[]> {
  const { config } = await oneServer(await client(given), slug);
  return config.tools.map(({ name, description = '' }) => ({ word: name, meaning: description })).filter(isPlain);
}

/**
 * Accepts only plain words. Shells insert candidates verbatim, so a name from an untrusted service must not be code or
 * an option.
 */
function isPlain({ word }: Candidate): boolean {
  return /^\w[\w.-]{0,99}$/.test(word);
}

/** Kind of word that is expected under the cursor. */
type ExpectedWord =
  | { kind: 'command'; command: Command; argument: Argument | undefined }
  | { kind: 'option'; command: Command }
  | { kind: 'argument'; argument: Argument | undefined }
  | { kind: 'value'; option: Option };

/** Command line up to the cursor, parsed according to the declared commands. */
type ReadWords = {
  expected: ExpectedWord;
  /** Word under the cursor, up to the cursor. */
  current: string;
  /** Fixed start of the word: `--server=` in `--server=pro`. */
  prefix: string;
  given: Given;
};

/** Parses a command line whose last word is under the cursor. */
function readWords(program: Command, words: readonly string[]): ReadWords {
  const [before, last] = wordsOf(words);
  let command = program;
  let waiting: Option | undefined;
  const operands: string[] = [];
  const given = new Map<string, string>();
  for (const word of before) {
    if (waiting) {
      given.set(waiting.attributeName(), word);
      waiting = undefined;
    } else if (word.startsWith('-')) {
      const [name = '', value] = splitAt(word);
      const option = command.options.find(({ long, short }) => long === name || short === name);
      if (!option?.required) continue;
      if (value === undefined) waiting = option;
      else given.set(option.attributeName(), value);
    } else {
      const next: Command | undefined = operands.length === 0 ? commandIn(command, word) : undefined;
      if (next) command = next;
      if (next?.name() !== word) operands.push(word);
    }
  }
  command.registeredArguments.forEach((argument, index) => {
    const operand = operands[index];
    if (operand !== undefined) given.set(argument.name(), operand);
  });
  return { ...expectedAt(command, { last, waiting, operands: operands.length }), given };
}

/** Splits off the word under the cursor. Rejoins `--server=pro`, which bash splits into three words. */
function wordsOf(words: readonly string[]): [before: string[], last: string] {
  const joined = words.filter((word, index) => word !== '=' || index === 0);
  const last = words.at(-1) === '=' ? '' : (joined.pop() ?? '');
  return [joined, last];
}

function splitAt(word: string): [name: string, value: string | undefined] {
  const at = word.indexOf('=');
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}

/**
 * Finds the command for a word. In a group whose default command is `list`, any other word is an argument of `list`.
 */
function commandIn(command: Command, word: string): Command | undefined {
  return command.commands.find((one) => one.name() === word) ?? usualIn(command);
}

function usualIn(command: Command): Command | undefined {
  return command.commands.find((one) => one.name() === 'list' && one.registeredArguments.length > 0);
}

function expectedAt(
  command: Command,
  { last, waiting, operands }: { last: string; waiting: Option | undefined; operands: number },
): Omit<ReadWords, 'given'> {
  if (waiting) return { expected: { kind: 'value', option: waiting }, current: last, prefix: '' };
  if (last.startsWith('-')) {
    const [name, value] = splitAt(last);
    const option = command.options.find(({ long }) => long === name);
    if (value === undefined || !option) return { expected: { kind: 'option', command }, current: last, prefix: '' };
    return { expected: { kind: 'value', option }, current: value, prefix: `${name}=` };
  }
  const shared = { current: last, prefix: '' };
  if (command.commands.length > 0)
    return { expected: { kind: 'command', command, argument: usualIn(command)?.registeredArguments[0] }, ...shared };
  const all = command.registeredArguments;
  const variadic = all.at(-1)?.variadic ? all.at(-1) : undefined;
  return { expected: { kind: 'argument', argument: all[operands] ?? variadic }, ...shared };
}
