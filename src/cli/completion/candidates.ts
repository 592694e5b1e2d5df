import type { Command } from 'commander';
import { type ExpectedWord, type ReadWords, readWords } from './read-words.ts';

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
