/**
 * Commands of a POSIX shell as words: quotes of all three kinds, escapes, continued lines and comments. A variable
 * (`$NAME`, `${NAME}`) becomes `{{NAME}}`; nothing else is expanded.
 */
export function shellCommands(text: string): string[][] {
  const commands: string[][] = [];
  let words: string[] = [];
  let word: string | undefined;
  const endWord = () => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const endCommand = () => {
    endWord();
    // A prompt in front of the command.
    if (words[0] === '$') words.shift();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    const quoted = quotedAt(text, at) ?? variableAt(text, at);
    if (quoted) {
      word = (word ?? '') + quoted.value;
      at = quoted.end;
    } else if (character === '\\' || character === '^') {
      const next = /^\r?\n/.exec(text.slice(at + 1, at + 3))?.[0];
      if (next !== undefined) at += next.length;
      else if (character === '^') word = `${word ?? ''}^`;
      else word = (word ?? '') + (text[++at] ?? '');
    } else if (/[\n;|&]/.test(character) && (word === undefined || character !== '&' || /\s/.test(text[at + 1] ?? ' ')))
      endCommand();
    else if (/\s/.test(character)) endWord();
    else if (character === '#' && word === undefined) at = endOfLine(text, at) - 1;
    else word = (word ?? '') + character;
  }
  endCommand();
  return commands;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

/** A variable that begins here, as the placeholder of a collection, and the position of its last character. */
function variableAt(text: string, at: number): { value: string; end: number } | undefined {
  if (text[at] !== '$') return undefined;
  const found = /^\$(?:([A-Za-z_]\w{0,63})|\{([A-Za-z_]\w{0,63})(?:[:#%/?+=-][^{}\n]{0,200})?\})/.exec(
    text.slice(at, at + 300),
  );
  return found ? { value: `{{${found[1] ?? found[2]}}}`, end: at + found[0].length - 1 } : undefined;
}

/** The value of a quoted text that begins here, and the position of its last character. */
function quotedAt(text: string, at: number): { value: string; end: number } | undefined {
  if (text[at] === "'") {
    const end = text.indexOf("'", at + 1);
    return end < 0 ? undefined : { value: text.slice(at + 1, end), end };
  }
  const isAnsi = text.startsWith("$'", at);
  if (text[at] !== '"' && !isAnsi) return undefined;
  const quote = isAnsi ? "'" : '"';
  let value = '';
  for (let from = at + (isAnsi ? 2 : 1); from < text.length; from++) {
    const character = text[from] as string;
    if (character === quote) return { value, end: from };
    const variable = isAnsi ? undefined : variableAt(text, from);
    if (variable) {
      value += variable.value;
      from = variable.end;
    } else if (character !== '\\') value += character;
    else if (isAnsi) {
      const found = ansiEscape(text.slice(from + 1, from + 11));
      value += found.value;
      from += found.length;
    } else {
      const next = text[++from] ?? '';
      value += /["\\$`]/.test(next) ? next : next === '\n' ? '' : `\\${next}`;
    }
  }
  return undefined;
}

const named: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
  e: '\u001b',
};

/** An escape of `$'…'` without its backslash. */
function ansiEscape(text: string): { value: string; length: number } {
  const code = /^(?:x([0-9a-f]{1,2})|u([0-9a-f]{1,4})|U([0-9a-f]{1,8}))/i.exec(text);
  const hex = code?.[1] ?? code?.[2] ?? code?.[3];
  if (code && hex !== undefined) {
    const point = Number.parseInt(hex, 16);
    return { value: point > 0x10ffff ? '' : String.fromCodePoint(point), length: code[0].length };
  }
  const first = text[0] ?? '';
  return { value: Object.hasOwn(named, first) ? (named[first] as string) : first, length: 1 };
}
