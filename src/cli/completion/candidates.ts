import type { Argument, Command, Option } from 'commander';

/** A word that fits, and what it is. */
export type Candidate = { word: string; meaning: string };

/** `files` leaves the word to the shell, which completes names of files. */
export type Completion = 'files' | readonly Candidate[];

/** Names that only the service or the files of this person know. */
export type NameSource = {
  slugs: (given: ReadonlyMap<string, string>) => Promise<Candidate[]>;
  tools: (slug: string, given: ReadonlyMap<string, string>) => Promise<Candidate[]>;
  profiles: () => Promise<Candidate[]>;
};

/** The words that fit under the cursor, in the order in which they are declared. */
export async function completionOf(program: Command, words: readonly string[], names: NameSource): Promise<Completion> {
  const read = readWords(program, words);
  const found = await fitting(read, names);
  if (found === 'files') return found;
  return found
    .filter(({ word }) => word.startsWith(read.current))
    .map(({ word, meaning }) => ({ word: read.prefix + word, meaning }));
}

async function fitting({ expected, given }: ReadWords, names: NameSource): Promise<Completion> {
  switch (expected.kind) {
    case 'command':
      return [...commandsIn(expected.command), ...asWords(await ofArgument(expected, given, names))];
    case 'option':
      return optionsOf(expected.command);
    case 'argument':
      return ofArgument(expected, given, names);
    case 'value':
      return ofOption(expected, given, names);
  }
}

const asWords = (found: Completion): readonly Candidate[] => (found === 'files' ? [] : found);

function commandsIn(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((one) => ({ word: one.name(), meaning: one.description() }));
}

function optionsOf(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, description }) => ({ word: long ?? '', meaning: description }));
}

async function ofArgument(
  { argument }: Extract<ExpectedWord, { argument: unknown }>,
  given: ReadonlyMap<string, string>,
  names: NameSource,
): Promise<Completion> {
  if (!argument) return [];
  if (argument.argChoices) return argument.argChoices.map((word) => ({ word, meaning: '' }));
  return ofName(argument.name(), given, names);
}

async function ofOption(
  { option }: Extract<ExpectedWord, { option: unknown }>,
  given: ReadonlyMap<string, string>,
  names: NameSource,
): Promise<Completion> {
  if (option.argChoices) return option.argChoices.map((word) => ({ word, meaning: '' }));
  if (option.long === '--profile') return names.profiles();
  if (option.long === '--server') return names.slugs(given);
  const placeholder = /[<[]([\w|-]+)/.exec(option.flags)?.[1] ?? '';
  return ofName(option.long === '--tool' ? 'tool' : placeholder, given, names);
}

/** What is known of an argument or a value by its name in the declarations. */
async function ofName(name: string, given: ReadonlyMap<string, string>, names: NameSource): Promise<Completion> {
  if (/^(file|dir|folder)\b/.test(name)) return 'files';
  if (name === 'slug') return names.slugs(given);
  if (name === 'profile') return names.profiles();
  const slug = given.get('slug') ?? given.get('server');
  if (name === 'tool') return slug === undefined ? [] : names.tools(slug, given);
  return [];
}

/** What the word under the cursor may be. */
type ExpectedWord =
  | { kind: 'command'; command: Command; argument: Argument | undefined }
  | { kind: 'option'; command: Command }
  | { kind: 'argument'; argument: Argument | undefined }
  | { kind: 'value'; option: Option };

/** The words before the cursor, as the declarations of the commands understand them. */
type ReadWords = {
  expected: ExpectedWord;
  /** The word under the cursor, up to it. */
  current: string;
  /** Part of the word that is not completed: `--server=` of `--server=pro`. */
  prefix: string;
  /** Values of options by their attribute, and of arguments by their name. */
  given: ReadonlyMap<string, string>;
};

/** Reads a command line whose last word is under the cursor. */
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

/** bash makes three words of `--server=pro`. */
function wordsOf(words: readonly string[]): [before: string[], last: string] {
  const joined = words.filter((word, index) => word !== '=' || index === 0);
  const last = words.at(-1) === '=' ? '' : (joined.pop() ?? '');
  return [joined, last];
}

function splitAt(word: string): [name: string, value: string | undefined] {
  const at = word.indexOf('=');
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}

/** The command of a word; in a group whose usual command is `list`, any other word is an argument of that one. */
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
