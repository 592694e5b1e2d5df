export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/**
 * What each shell runs at the prompt: it asks `toolhost complete` with the words up to the cursor. The first line of
 * the answer is `files` or `words`; the others are a word, a tab and its meaning.
 */
export const completionScripts: Readonly<Record<Shell, string>> = {
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
