import { Argument, type Command } from 'commander';
import { print } from '../print/print.ts';
import { type Shell, shells } from './scripts.ts';

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print what a shell needs to complete commands, options, slugs and names of tools')
    .addArgument(new Argument('<shell>', 'shell that it is for').choices(shells))
    .addHelpText(
      'after',
      `
Slugs and names of tools are asked of the service, for at most a second and a half.

Examples:
  source <(toolhost completion bash)
  source <(toolhost completion zsh)
  toolhost completion fish | source`,
    )
    .action(async (shell: Shell) => {
      const { completionScripts } = await import('./scripts.ts');
      print(completionScripts[shell].trimEnd());
    });
  program
    .command('complete', { hidden: true })
    .description('what the scripts of completion ask')
    .argument('[words...]', 'words up to the cursor')
    .action((words: string[]) => complete(program, words));
}

/** However slow something is, the prompt comes back. */
const longestMs = 2500;
const mostWords = 1000;

async function complete(program: Command, words: readonly string[]): Promise<void> {
  setTimeout(() => process.exit(0), longestMs).unref();
  const [{ completionOf }, { knownNames }] = await Promise.all([import('./candidates.ts'), import('./known-names.ts')]);
  try {
    const found = await completionOf(program, words, knownNames(process.env));
    const lines = found === 'files' ? ['files'] : ['words', ...found.slice(0, mostWords).map(lineOf)];
    process.stdout.write(`${lines.join('\n')}\n`);
  } catch {
    // A message would be written into the line that somebody is typing.
    process.exitCode = 0;
  }
}

const mostOfMeaning = 80;

function lineOf({ word, meaning }: { word: string; meaning: string }): string {
  const plain = meaning.replaceAll(/[\p{Cc}\s]+/gu, ' ');
  return `${word}\t${plain.length > mostOfMeaning ? `${plain.slice(0, mostOfMeaning - 1)}…` : plain}`;
}
