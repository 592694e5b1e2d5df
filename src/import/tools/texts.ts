/** Descriptions for models: short, plain text in one line, without markup and invisible characters. */

export const mostToolText = 300;
export const mostFieldText = 120;

/** Maximum number of characters of a text that are processed; some descriptions are whole manuals. */
const mostRead = 4000;

/** Control characters other than tab and line feed, and invisible characters, including bidirectional ones. */
const invisible = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Returns an input name without surrounding white space and without invisible characters, which are mistakes or tricks.
 */
export function visibleName(name: string): string {
  return name
    .slice(0, mostRead)
    .toWellFormed()
    .replaceAll(invisible, '')
    .replaceAll(/[\t\n]/g, ' ')
    .trim();
}

const entities: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', '#39': "'" }),
);

/** Returns the first paragraph of a text as one line of plain text, with at most `maxLength` characters. */
export function plainText(text: string, most: number): string {
  const visible = text.slice(0, mostRead).toWellFormed().replaceAll(invisible, '');
  const paragraphs = withoutMarkup(visible)
    .split(/\n\s*\n/)
    .map(oneLine)
    .filter((paragraph) => /[\p{L}\p{N}]/u.test(paragraph));
  const [first = '', second = ''] = paragraphs;
  const isWhole = first.endsWith(':') && second !== '' && first.length + second.length < most;
  return shortened(withoutLeadIn(isWhole ? `${first} ${second}` : first), most);
}

/** Removes a last sentence that introduces something that was cut: "Supported values are:". */
function withoutLeadIn(text: string): string {
  if (!text.endsWith(':')) return text;
  const end = lastSentenceEnd(text);
  return end === undefined ? '' : text.slice(0, end + 1);
}

/** Returns the end of the last complete sentence before the end of the text. Abbreviations are not sentence ends. */
function lastSentenceEnd(text: string): number | undefined {
  return [...text.matchAll(/(?<!\b(?:e\.g|i\.e|etc|vs|approx|no|incl))[.!?](?=\s)/gi)].at(-1)?.index;
}

function withoutMarkup(text: string): string {
  return text
    .replaceAll(/<!--[\s\S]*?-->/g, ' ')
    .replaceAll(/<(table|script|style|pre)\b[\s\S]*?<\/\1\s*>/gi, ' ')
    .replaceAll(/<\/?(?:p|div|ul|ol|h[1-6])\b[^>\n]{0,200}>/gi, '\n\n')
    .replaceAll(/<br\s*\/?>/gi, '\n')
    .replaceAll(/<\/?[a-z][a-z0-9-]*(?:\s[^<>]{0,500})?\/?>/gi, '')
    .replaceAll(/```[\s\S]*?```/g, ' ')
    .replaceAll(/^\s*\|.*$/gm, '')
    .replaceAll(/^\s*[-=*_]{3,}\s*$/gm, '')
    .replaceAll(/^\s*#{1,6}\s+[^\n]*$/gm, '\n')
    .replaceAll(/!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)/g, '')
    .replaceAll(/\[([^\]\n]{1,300})\]\([^)\n]{0,500}\)/g, '$1')
    .replaceAll(/\*\*([^*\n]{1,300})\*\*/g, '$1')
    .replaceAll(/&([a-z]{2,4}|#39);/gi, (found, name: string) => entities.get(name.toLowerCase()) ?? found);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Truncates a text after a sentence if one ends after the first third, otherwise after a word. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, most - 1).toWellFormed();
  const end = lastSentenceEnd(`${cut} `);
  if (end !== undefined && end > most / 3) return cut.slice(0, end + 1);
  const word = cut.lastIndexOf(' ');
  return `${(word > most / 2 ? cut.slice(0, word) : cut).replace(/[\s,;:(]+$/, '')}…`;
}

/** Joins sentences into one text and ends each of them with a period. */
export function joined(parts: readonly string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part, index, all) => (index < all.length - 1 && !/[.!?…]$/.test(part) ? `${part}.` : part))
    .join(' ');
}

const longestName = 200;

/** Truncates a name for a report. */
export function listedName(name: string): string {
  return name.length > longestName ? `${name.slice(0, longestName)}…` : name;
}
