/** Results go to standard output, everything else to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${harmless(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, else on one line for programs. */
export function printJson(value: unknown): void {
  if (process.stdout.isTTY) print(JSON.stringify(value, undefined, 2));
  else process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Messages hold texts of services and files, so nothing in them reaches a terminal as a command. */
export function note(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/** A control character, with what makes a colour of `painter` of it. */
const controls = /\p{Cc}(?:\[(?:0|2|31|32|33)m)?/gu;
const kept = ['\n', '\t', '\u001b['];

/** Replaces control characters but line breaks, tabs and colours, so that texts of others send no commands to a terminal. */
function harmless(text: string): string {
  return text.replaceAll(controls, (found) => (kept.some((start) => found.startsWith(start)) ? found : '\u{fffd}'));
}

/** Prints a table. Columns are as wide as their widest entry; the last one is not padded. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((entry, column) => entry.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
