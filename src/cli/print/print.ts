/** Results go to standard output, everything else to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${harmless(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, else on one line for programs. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, process.stdout.isTTY ? 2 : undefined)}\n`);
}

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Replaces control characters, so that stored text cannot send escape sequences to the terminal. */
function harmless(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '\u{fffd}');
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
