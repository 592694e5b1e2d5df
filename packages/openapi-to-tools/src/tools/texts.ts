/** Maximum number of characters of a tool's and an argument's description. */
export const maxToolText = 300;
export const maxFieldText = 120;

/** Maximum number of characters of a text that are processed; some descriptions are whole manuals. */
const maxInputLength = 4000;

/** Control characters other than tab and line feed, and invisible characters, including bidirectional ones. */
const invisibleCharacters = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Returns an input name without surrounding white space and without invisible characters, which are mistakes or tricks.
 */
export function toVisibleName(name: string): string {
  return name
    .slice(0, maxInputLength)
    .toWellFormed()
    .replaceAll(invisibleCharacters, '')
    .replaceAll(/[\t\n]/g, ' ')
    .trim();
}

const entities: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', '#39': "'" }),
);

/** Returns the first paragraph of a text as one line of plain text, with at most `maxLength` characters. */
export function toPlainText(text: string, maxLength: number): string {
  const visible = text.slice(0, maxInputLength).toWellFormed().replaceAll(invisibleCharacters, '');
  const paragraphs = removeMarkup(visible)
    .split(/\n\s*\n/)
    .map(toOneLine)
    .filter((paragraph) => /[\p{L}\p{N}]/u.test(paragraph));
  const [firstParagraph = '', secondParagraph = ''] = paragraphs;
  const isIntroduction =
    firstParagraph.endsWith(':') &&
    secondParagraph !== '' &&
    firstParagraph.length + secondParagraph.length < maxLength;
  return shorten(removeLeadIn(isIntroduction ? `${firstParagraph} ${secondParagraph}` : firstParagraph), maxLength);
}

/** Removes a last sentence that introduces something that was cut: "Supported values are:". */
function removeLeadIn(text: string): string {
  if (!text.endsWith(':')) return text;
  const sentenceEnd = findLastSentenceEnd(text);
  return sentenceEnd === undefined ? '' : text.slice(0, sentenceEnd + 1);
}

/** Returns the end of the last complete sentence before the end of the text. Abbreviations are not sentence ends. */
function findLastSentenceEnd(text: string): number | undefined {
  return [...text.matchAll(/(?<!\b(?:e\.g|i\.e|etc|vs|approx|no|incl))[.!?](?=\s)/gi)].at(-1)?.index;
}

function removeMarkup(text: string): string {
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
    .replaceAll(/&([a-z]{2,4}|#39);/gi, (entity, name: string) => entities.get(name.toLowerCase()) ?? entity);
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** Truncates a text after a sentence if one ends after the first third, otherwise after a word. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const cut = text.slice(0, maxLength - 1).toWellFormed();
  const sentenceEnd = findLastSentenceEnd(`${cut} `);
  if (sentenceEnd !== undefined && sentenceEnd > maxLength / 3) return cut.slice(0, sentenceEnd + 1);
  const lastSpace = cut.lastIndexOf(' ');
  return `${(lastSpace > maxLength / 2 ? cut.slice(0, lastSpace) : cut).replace(/[\s,;:(]+$/, '')}…`;
}

/** Joins sentences into one text and ends each of them with a period. */
export function joinSentences(sentences: readonly string[]): string {
  return sentences
    .filter((sentence) => sentence !== '')
    .map((sentence, index, all) => (index < all.length - 1 && !/[.!?…]$/.test(sentence) ? `${sentence}.` : sentence))
    .join(' ');
}

const maxNameLength = 200;

/** Truncates a name for a report. */
export function truncateName(name: string): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name;
}
