/** A text as one word of a POSIX shell (IEEE 1003.1, 2.2.2). A word cannot hold the character NUL. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Most bytes of a word: Linux limits one argument of a program to 128 KiB (execve(2)). */
const mostBytes = 100_000;

/** Whether a text can be an argument of a program. */
export function fitsCommandLine(text: string): boolean {
  return text.length <= mostBytes && !text.includes('\0') && byteLength(text) <= mostBytes;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
