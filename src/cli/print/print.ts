/** Results go to standard output, everything else to standard error, so that output can be piped. */
export function print(text: string): void {
  process.stdout.write(process.stdout.isTTY ? `${harmless(text)}\n` : `${text}\n`);
}

/** Prints JSON: indented at a terminal, else on one line for programs. */
export function printJson(value: unknown): void {
  print(jsonText(value, process.stdout.isTTY ? 2 : undefined));
}

/** JSON in which no character is one that `harmless` would replace: JSON itself leaves those above U+007E as they are. */
export function jsonText(value: unknown, indent?: number): string {
  const escaped = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replaceAll(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, escaped);
}

/** A text of others on one line, so that it cannot look like several. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\n\v\f\r\u0085\u2028\u2029]\s*/g, ' ');
}

/** Messages hold texts of services and files, so nothing in them reaches a terminal as a command. */
export function note(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/**
 * A control character, with what makes a colour of `painter` of it; or one that changes the direction of writing, which
 * would show a text in another order.
 */
const controls = /\p{Cc}(?:\[(?:0|2|31|32|33)m)?|[\u202a-\u202e\u2066-\u2069]/gu;
const kept = ['\n', '\t', '\u001b['];

/** Replaces control characters but line breaks, tabs and colours, so that texts of others send no commands to a terminal. */
function harmless(text: string): string {
  return text.replaceAll(controls, (found) => (kept.some((start) => found.startsWith(start)) ? found : '\u{fffd}'));
}

/** Prints a table. Columns are as wide as their widest entry; the last one is not padded. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows.map((row) => row.map(oneLine))];
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

type Colour = 'green' | 'red' | 'yellow' | 'dim';

const codes: Record<Colour, number> = { green: 32, red: 31, yellow: 33, dim: 2 };

/** Colours texts at a terminal that shows colours, unless NO_COLOR is set (https://no-color.org). */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): (text: string, colour: Colour) => string {
  const shows = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (text, colour) => (shows ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text);
}
