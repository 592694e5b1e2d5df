/**
 * Searches the site. The build creates the index with this module, and publishes it without types as `assets/search.js`
 * for browsers, so it imports nothing.
 */

/** Section of a page, from a heading to the next one. */
export type Section = {
  /** URL relative to the site root, with the heading anchor. */
  href: string;
  page: string;
  heading: string;
  /** Beginning of the text, shown in results. */
  excerpt: string;
};

/** Pairs of section number and weight, for each word. */
export type SearchIndex = { sections: Section[]; words: Record<string, number[]> };

/** Section data for the index. */
export type SectionText = Section & {
  text: string;
  /** Tasks that the page is for, in the words of readers; empty except for the first section. */
  tasks: string;
  /** True for reference pages, which rank below guides. */
  isReference: boolean;
};

const excerptLength = 200;
/** Stop words. */
const empty = new Set(
  'a an and are as at be by do does for from how i in is it my of on or that the to we what with'.split(' '),
);

/** Reduces a word to its stem: `limits` and `limited` to `limit`, `rotation` and `rotate` to `rotat`. */
function stem(word: string): string {
  const short = word.replace(/(?:ing|ions?|ed|es|s|e)$/, '');
  return short.length < 3 ? word : short.replace(/([^aeiou])\1$/, '$1');
}

/** Returns the stems of the words in a text. A name such as `FastAPI` counts as one word, and as its parts. */
function getStems(text: string): string[] {
  const words = (text.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((name) => {
    const parts = name.split(/(?<=\p{Ll})(?=\p{Lu})/u);
    return parts.length > 1 ? [...parts, name] : parts;
  });
  return words
    .map((word) => word.toLowerCase())
    .filter((word) => !empty.has(word))
    .map(stem);
}

/** Weighs each word of a section: highest in the heading, then in the tasks, then in the page title. */
function getWeights({ heading, page, tasks, text, isReference }: SectionText): Map<string, number> {
  const weights = new Map<string, number>();
  const add = (words: readonly string[], weight: number) => {
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + weight);
  };
  const inHeading = new Set(getStems(heading));
  // Words in a short heading weigh more.
  add([...inHeading], 4 + 6 / inHeading.size);
  add([...new Set(getStems(tasks))], 4);
  add([...new Set(getStems(page))], 2);
  const words = getStems(text);
  // A word weighs less in a long text, and less with each repetition.
  add(words, 1 / Math.sqrt(1 + words.length / 100));
  const share = isReference ? 0.5 : 1;
  return new Map([...weights].map(([word, weight]) => [word, Math.round((share * 100 * weight) / (weight + 2)) / 10]));
}

export function makeIndex(texts: readonly SectionText[]): SearchIndex {
  const words = new Map<string, number[]>();
  for (const [number, text] of texts.entries()) {
    for (const [word, weight] of getWeights(text)) {
      const found = words.get(word) ?? [];
      found.push(number, weight);
      words.set(word, found);
    }
  }
  const sections = texts.map(({ href, page, heading, text }) => ({
    ...{ href, page, heading },
    excerpt: text.length > excerptLength ? `${text.slice(0, excerptLength)}…` : text,
  }));
  return { sections, words: Object.fromEntries([...words].toSorted()) };
}

/** Finds the best sections for a query, best first. The last word may be incomplete, so it matches prefixes. */
export function find({ sections, words }: SearchIndex, query: string, limit: number): Section[] {
  const queryStems = [...new Set(getStems(query))];
  const scores = new Map<number, number>();
  const hits = new Map<number, number>();
  for (const [position, word] of queryStems.entries()) {
    const isLast = position === queryStems.length - 1;
    const forms = Object.keys(words).filter((form) => form === word || (isLast && form.startsWith(word)));
    const best = new Map<number, number>();
    for (const form of forms) {
      const pairs = words[form] ?? [];
      const rarity = Math.log(1 + (2 * sections.length) / pairs.length) * (form === word ? 1 : 0.4);
      for (let at = 0; at < pairs.length; at += 2) {
        const [section = 0, weight = 0] = pairs.slice(at, at + 2);
        best.set(section, Math.max(best.get(section) ?? 0, weight * rarity));
      }
    }
    for (const [section, score] of best) {
      scores.set(section, (scores.get(section) ?? 0) + score);
      hits.set(section, (hits.get(section) ?? 0) + 1);
    }
  }
  // A section with all words ranks above one with a rare word.
  const rank = (section: number) => (scores.get(section) ?? 0) * ((hits.get(section) ?? 0) / queryStems.length) ** 2;
  return [...scores.keys()]
    .toSorted((one, other) => rank(other) - rank(one) || one - other)
    .slice(0, limit)
    .flatMap((section) => sections[section] ?? []);
}
