/** Commands as `cmd` of Windows takes them, and as browsers there copy them: "Copy as cURL (cmd)". */

/** Whether a text escapes quotes or ends of lines with carets, which other shells do not. */
export function isOfWindows(text: string): boolean {
  return /(?:^|\s)\^(?:"|\r?\n)/.test(text);
}

/** The commands as words. */
export function windowsCommands(text: string): string[][] {
  return commandLines(text.replaceAll('\r\n', '\n'))
    .map(wordsOf)
    .filter((words) => words.length > 0);
}

/**
 * The lines of commands without carets: a caret takes its meaning from the next character, but between quotes it is one.
 * A caret at the end of a line joins the next one, whose first character has no meaning either.
 */
function commandLines(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '^' && !isQuoted) {
      if (text[at + 1] === '\n') at++;
      line += text[++at] ?? '';
    } else if (character === '\n' || (/[&|]/.test(character) && !isQuoted)) {
      lines.push(line);
      line = '';
      isQuoted = false;
    } else {
      if (character === '"') isQuoted = !isQuoted;
      line += character;
    }
  }
  return [...lines, line];
}

/** The words of a line, as programs of Windows split it: backslashes escape only quotes, and two quotes are one. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let isQuoted = false;
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    const backslashes = /^\\+(?=")/.exec(line.slice(at, at + mostBackslashes))?.[0].length ?? 0;
    if (backslashes > 0) {
      const isEscaped = backslashes % 2 === 1;
      word = (word ?? '') + '\\'.repeat(Math.floor(backslashes / 2)) + (isEscaped ? '"' : '');
      at += backslashes - (isEscaped ? 0 : 1);
    } else if (character === '"' && isQuoted && line[at + 1] === '"') {
      word = `${word ?? ''}"`;
      at++;
    } else if (character === '"') {
      isQuoted = !isQuoted;
      word ??= '';
    } else if (/\s/.test(character) && !isQuoted) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + character;
  }
  return word === undefined ? words : [...words, word];
}

const mostBackslashes = 100;
