import type { Argument, Command, Option } from 'commander';
import { resolveConnection } from '../connection/connect.ts';
import { readServerWithConfig } from '../connection/lists.ts';
import { createRestClient, type RestClient } from '../connection/rest-client.ts';
import { getConfigFolder, readProfiles } from '../profiles/profiles.ts';

type Candidate = { word: string; description: string };

/** Candidates, or `files` to let the shell complete file names. */
type Completion = 'files' | readonly Candidate[];

/** Values on the command line: options by attribute name, arguments by name. */
type WordValues = ReadonlyMap<string, string>;

/** Returns the completion candidates for the word under the cursor, in declaration order. */
export async function getCompletion(program: Command, words: readonly string[]): Promise<Completion> {
  const { expected, values, currentWord, prefix } = parseWords(program, words);
  const completion = await getCandidates(expected, values);
  if (completion === 'files') return completion;
  return completion
    .filter(({ word }) => word.startsWith(currentWord))
    .map(({ word, description }) => ({ word: prefix + word, description }));
}

async function getCandidates(expected: ExpectedWord, values: WordValues): Promise<Completion> {
  switch (expected.kind) {
    case 'command': {
      const { command, argument } = expected;
      const commands = command.createHelp().visibleCommands(command);
      const defaultCandidates = await completeArgument(argument, values);
      const words = commands.map((subcommand) => ({ word: subcommand.name(), description: subcommand.description() }));
      return [...words, ...(defaultCandidates === 'files' ? [] : defaultCandidates)];
    }
    case 'option': {
      const { command } = expected;
      const options = command.createHelp().visibleOptions(command);
      return options.map(({ long, description }) => ({ word: long ?? '', description }));
    }
    case 'argument':
      return completeArgument(expected.argument, values);
    case 'value':
      return completeOption(expected.option, values);
  }
}

async function completeArgument(argument: Argument | undefined, values: WordValues): Promise<Completion> {
  if (!argument) return [];
  return getChoices(argument) ?? completeByName(argument.name(), values);
}

async function completeOption(option: Option, values: WordValues): Promise<Completion> {
  // Reads `file` from `--output <file>`.
  const placeholder = /[<[]([\w|-]+)/.exec(option.flags)?.[1] ?? '';
  const placeholderNames: { [long: string]: string } = { '--profile': 'profile', '--server': 'slug', '--tool': 'tool' };
  return getChoices(option) ?? completeByName(placeholderNames[option.long ?? ''] ?? placeholder, values);
}

function getChoices({ argChoices }: Argument | Option): Candidate[] | undefined {
  return argChoices?.map((word) => ({ word, description: '' }));
}

/** Returns the candidates for an argument or an option value. `name` is its name in the help, such as `file`. */
async function completeByName(name: string, values: WordValues): Promise<Completion> {
  if (/^(file|dir|folder)\b/.test(name)) return 'files';
  if (name === 'slug') return completeSlugs(values);
  if (name === 'profile')
    return [...readProfiles(getConfigFolder()).urls].map(([word, description]) => ({ word, description }));
  const slug = values.get('slug') ?? values.get('server');
  return name === 'tool' && slug !== undefined ? completeTools(slug, values) : [];
}

/** Short, because the user is waiting at the prompt. */
const requestTimeoutMs = 1500;

async function createClient(values: WordValues): Promise<RestClient> {
  const options = Object.fromEntries([...values].filter(([name]) => ['url', 'key', 'profile'].includes(name)));
  const { url, credential } = await resolveConnection(options);
  // Tokens are not renewed here, because that could exceed the timeout.
  return createRestClient({ url, credential: { token: credential.token } }, requestTimeoutMs);
}

async function completeSlugs(values: WordValues): Promise<Candidate[]> {
  const { servers } = await (await createClient(values)).run('listMcpServers', { limit: 200 });
  return servers.map(({ slug, name }) => ({ word: slug, description: name })).filter(isSafeWord);
}

async function completeTools(slug: string, values: WordValues): Promise<Candidate[]> {
  const { config } = await readServerWithConfig(await createClient(values), slug);
  return config.tools.map(({ name, description = '' }) => ({ word: name, description })).filter(isSafeWord);
}

/**
 * Accepts only plain words. Shells insert candidates verbatim, so a name from an untrusted service must not be code or
 * an option.
 */
function isSafeWord({ word }: Candidate): boolean {
  return /^\w[\w.-]{0,99}$/.test(word);
}

/** Kind of word that is expected under the cursor. */
type ExpectedWord =
  | { kind: 'command'; command: Command; argument: Argument | undefined }
  | { kind: 'option'; command: Command }
  | { kind: 'argument'; argument: Argument | undefined }
  | { kind: 'value'; option: Option };

/** Command line up to the cursor, parsed according to the declared commands. */
type ParsedWords = {
  expected: ExpectedWord;
  /** Word under the cursor, up to the cursor. */
  currentWord: string;
  /** Fixed start of the word: `--server=` in `--server=pro`. */
  prefix: string;
  values: WordValues;
};

/** Parses a command line whose last word is under the cursor. */
function parseWords(program: Command, words: readonly string[]): ParsedWords {
  const [previousWords, lastWord] = splitLastWord(words);
  let command = program;
  let pendingOption: Option | undefined;
  const operands: string[] = [];
  const values = new Map<string, string>();
  for (const word of previousWords) {
    if (pendingOption) {
      values.set(pendingOption.attributeName(), word);
      pendingOption = undefined;
    } else if (word.startsWith('-')) {
      const [name = '', value] = splitAtEquals(word);
      const option = command.options.find(({ long, short }) => long === name || short === name);
      if (!option?.required) continue;
      if (value === undefined) pendingOption = option;
      else values.set(option.attributeName(), value);
    } else {
      const subcommand: Command | undefined = operands.length === 0 ? findSubcommand(command, word) : undefined;
      if (subcommand) command = subcommand;
      // A word that is not the command's name is an argument of the default command.
      if (subcommand?.name() !== word) operands.push(word);
    }
  }
  command.registeredArguments.forEach((argument, index) => {
    const operand = operands[index];
    if (operand !== undefined) values.set(argument.name(), operand);
  });
  return { ...getExpectedWord(command, { lastWord, pendingOption, operandCount: operands.length }), values };
}

/** Splits off the word under the cursor. Drops the `=` of `--server=pro`, which bash splits into three words. */
function splitLastWord(words: readonly string[]): [previousWords: string[], lastWord: string] {
  const previousWords = words.filter((word, index) => word !== '=' || index === 0);
  const lastWord = words.at(-1) === '=' ? '' : (previousWords.pop() ?? '');
  return [previousWords, lastWord];
}

function splitAtEquals(word: string): [name: string, value: string | undefined] {
  const equalsIndex = word.indexOf('=');
  return equalsIndex < 0 ? [word, undefined] : [word.slice(0, equalsIndex), word.slice(equalsIndex + 1)];
}

/**
 * Finds the command for a word. In a group whose default command is `list`, any other word is an argument of `list`.
 */
function findSubcommand(command: Command, word: string): Command | undefined {
  return command.commands.find((subcommand) => subcommand.name() === word) ?? findDefaultCommand(command);
}

function findDefaultCommand(command: Command): Command | undefined {
  return command.commands.find(
    (subcommand) => subcommand.name() === 'list' && subcommand.registeredArguments.length > 0,
  );
}

function getExpectedWord(
  command: Command,
  {
    lastWord,
    pendingOption,
    operandCount,
  }: { lastWord: string; pendingOption: Option | undefined; operandCount: number },
): Omit<ParsedWords, 'values'> {
  const wholeWord = { currentWord: lastWord, prefix: '' };
  if (pendingOption) return { expected: { kind: 'value', option: pendingOption }, ...wholeWord };
  if (lastWord.startsWith('-')) {
    const [name, value] = splitAtEquals(lastWord);
    const option = command.options.find(({ long }) => long === name);
    if (value === undefined || !option) return { expected: { kind: 'option', command }, ...wholeWord };
    return { expected: { kind: 'value', option }, currentWord: value, prefix: `${name}=` };
  }
  if (command.commands.length > 0)
    return {
      expected: { kind: 'command', command, argument: findDefaultCommand(command)?.registeredArguments[0] },
      ...wholeWord,
    };
  const declaredArguments = command.registeredArguments;
  const variadic = declaredArguments.at(-1)?.variadic ? declaredArguments.at(-1) : undefined;
  return { expected: { kind: 'argument', argument: declaredArguments[operandCount] ?? variadic }, ...wholeWord };
}
