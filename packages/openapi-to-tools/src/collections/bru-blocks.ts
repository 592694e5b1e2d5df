/** Block of a `.bru` file: its name, such as `body:json`, and its lines without indentation. */
export type BruBlock = { name: string; lines: readonly string[]; line: number };

/** Pair of a block. `isDisabled` is true for a disabled pair, such as `~limit: 10`. */
export type BruPair = { name: string; value: string; isDisabled: boolean; description: string };

/** Matches the first line of a block, such as `body:json {`. */
const blockStart = /^([A-Za-z][\w-]*(?::[\w:-]+)?)\s*([{[])\s*$/;

/** Returns true if a text begins with a Bruno block, ignoring empty lines. */
export function isBru(text: string): boolean {
  const firstLine = /^\s*([^\n]*)\n/.exec(text.slice(0, 10_000))?.[1]?.trimEnd() ?? '';
  return (
    /^(?:meta|get|post|put|patch|delete|head|options|headers|auth|query|vars|params|script|docs)\b/.test(firstLine) &&
    blockStart.test(firstLine)
  );
}

/** Reads the blocks of one or more files. A block ends with a line that is only the closing bracket. */
export function readBruBlocks(text: string): BruBlock[] {
  const blocks: BruBlock[] = [];
  const allLines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  for (let index = 0; index < allLines.length; index++) {
    const [, name, bracket] = blockStart.exec(allLines[index] ?? '') ?? [];
    if (name === undefined) continue;
    const closingBracket = bracket === '{' ? '}' : ']';
    const lines: string[] = [];
    const line = index + 1;
    for (index++; index < allLines.length && allLines[index]?.trimEnd() !== closingBracket; index++)
      lines.push((allLines[index] as string).replace(/^ {2}/, ''));
    blocks.push({ name, lines, line });
  }
  return blocks;
}

/** Reads the pairs of a block. A value with several lines is enclosed in `'''`. */
export function readBruPairs(block: BruBlock | undefined): BruPair[] {
  const pairs: BruPair[] = [];
  const lines = block?.lines ?? [];
  let description = '';
  for (let index = 0; index < lines.length; index++) {
    const line = (lines[index] as string).trim();
    const descriptionText = /^@description\((.*)\)$/s.exec(line)?.[1];
    const { name, value: rawValue, isDisabled } = parsePair(line);
    if (descriptionText !== undefined) description = descriptionText.replace(/^(["']{1,3})([\s\S]*)\1$/, '$2');
    else if (name !== '') {
      let value = rawValue;
      if (rawValue.startsWith("'''") && !rawValue.slice(3).includes("'''")) {
        const inner: string[] = [rawValue.slice(3)];
        for (index++; index < lines.length && !(lines[index] as string).includes("'''"); index++)
          inner.push((lines[index] as string).trim());
        value = inner.join('\n').trim();
      }
      pairs.push({ name, value: value.replace(/^'''([\s\S]*?)'''/, '$1'), isDisabled, description });
      description = '';
    }
  }
  return pairs;
}

/** Parses a pair. The name may be quoted and contain colons. */
function parsePair(line: string): { name: string; value: string; isDisabled: boolean } {
  const isDisabled = line.startsWith('~');
  const text = isDisabled ? line.slice(1) : line;
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text);
  const colon = text.indexOf(':', quoted?.[0].length ?? 0);
  if (colon < 0) return { name: '', value: '', isDisabled };
  const name = quoted ? (quoted[1] as string).replaceAll(/\\(.)/g, '$1') : text.slice(0, colon).trim();
  return { name, value: text.slice(colon + 1).trim(), isDisabled };
}
