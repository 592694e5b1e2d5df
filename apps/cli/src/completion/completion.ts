import { Argument, type Command } from 'commander';
import { print } from '../print.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a shell completion script for commands, options, slugs, and tool names')
    .addArgument(new Argument('<shell>', 'shell to print the script for').choices(shells))
    .addHelpText(
      'after',
      `
Slugs and tool names are fetched from the service, with a timeout of 1.5 s.

Examples:
  source <(toolhost completion bash)
  source <(toolhost completion zsh)
  toolhost completion fish | source`,
    )
    .action((shell: Shell) => print(completionScripts[shell].trimEnd()));
  program
    .command('complete', { hidden: true })
    .description('print completion candidates, for the completion scripts')
    .argument('[words...]', 'words up to the cursor')
    .action((words: string[]) => printCompletion(program, words));
}

/** Time limit of a completion, so that the prompt always comes back. */
const completionTimeoutMs = 2500;
const maxCandidates = 1000;

async function printCompletion(program: Command, words: readonly string[]): Promise<void> {
  setTimeout(() => process.exit(0), completionTimeoutMs).unref();
  const { getCompletion } = await import('./candidates.ts');
  try {
    const completion = await getCompletion(program, words);
    const lines =
      completion === 'files' ? ['files'] : ['words', ...completion.slice(0, maxCandidates).map(formatCandidate)];
    process.stdout.write(`${lines.join('\n')}\n`);
  } catch {
    // A message would appear in the line that the user is typing.
    process.exitCode = 0;
  }
}

const maxDescriptionLength = 80;

function formatCandidate({ word, description }: { word: string; description: string }): string {
  const singleLine = description.replaceAll(/[\p{Cc}\s]+/gu, ' ');
  return `${word}\t${singleLine.length > maxDescriptionLength ? `${singleLine.slice(0, maxDescriptionLength - 1)}…` : singleLine}`;
}

/**
 * Completion script of each shell. The script runs `toolhost complete` with the words up to the cursor. The first line
 * of the output is `files` or `words`. Each further line is a word, a tab, and a description.
 */
const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `_toolhost() {
  local line answer=""
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $answer ]]; then answer=$line; else COMPREPLY+=("\${line%%$'\\t'*}"); fi
  done < <("$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $answer == files ]]; then compopt -o default; fi
}
complete -F _toolhost toolhost
`,
  zsh: `#compdef toolhost
_toolhost() {
  local -a lines described
  local line
  lines=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $lines[1] == files ]]; then
    _files
    return
  fi
  for line in "\${(@)lines[2,-1]}"; do
    described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -t values toolhost described
}
if [[ $funcstack[1] == _toolhost ]]; then
  _toolhost "$@"
else
  compdef _toolhost toolhost
fi
`,
  fish: `function __toolhost_complete
  set -l tokens (commandline -opc)
  set -l lines ($tokens[1] complete -- $tokens[2..] (commandline -ct) 2>/dev/null)
  if test "$lines[1]" = files
    __fish_complete_path (commandline -ct)
  else if set -q lines[2]
    printf '%s\\n' $lines[2..]
  end
end
complete -c toolhost -f -a '(__toolhost_complete)'
`,
};
