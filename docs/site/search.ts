/**
 * The search of the site. The build makes the index with it, and sends it to browsers without its types, as
 * `assets/search.js`; so it imports nothing.
 */

/** A part of a page, from a heading to the next one. */
export type Section = {
  /** The address from the root of the site, with the anchor of the heading. */
  href: string;
  page: string;
  heading: string;
  /** The beginning of its text, which a result shows. */
  excerpt: string;
};

/** For each word of the pages, pairs of the number of a section and the weight of the word in it. */
export type SearchIndex = { sections: Section[]; words: Record<string, number[]> };

/** What the build knows of a section. */
export type SectionText = Section & {
  text: string;
  /** What readers want to do with the page, in their words; empty but for its first section. */
  tasks: string;
  /** What is only looked up comes after what explains it. */
  isReference: boolean;
};

const excerptLength = 200;
/** Words that say nothing about what is looked for. */
const empty = new Set(
  'a an and are as at be by do does for from how i in is it my of on or that the to we what with'.split(' '),
);

/** One form for the forms of a word: `limits` and `limited` are `limit`, `rotation` and `rotate` are `rotat`. */
function stem(word: string): string {
  const short = word.replace(/(?:ing|ions?|ed|es|s|e)$/, '');
  return short.length < 3 ? word : short.replace(/([^aeiou])\1$/, '$1');
}

/** The stems of the words of a text. A name such as `deleteMcpServer` is its words. */
function stemsOf(text: string): string[] {
  const words =
    text
      .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => !empty.has(word)).map(stem);
}

/** How much each word says about a section: most in its heading, then in what readers want, then in the title of its page. */
function weightsOf({ heading, page, tasks, text, isReference }: SectionText): Map<string, number> {
  const weights = new Map<string, number>();
  const add = (words: readonly string[], weight: number) => {
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + weight);
  };
  const inHeading = new Set(stemsOf(heading));
  // Each word of a short heading says more.
  add([...inHeading], 4 + 6 / inHeading.size);
  add([...new Set(stemsOf(tasks))], 4);
  add([...new Set(stemsOf(page))], 2);
  const words = stemsOf(text);
  // A word counts less in a long text, and less with each time that it is said.
  add(words, 1 / Math.sqrt(1 + words.length / 100));
  const share = isReference ? 0.5 : 1;
  return new Map([...weights].map(([word, weight]) => [word, Math.round((share * 100 * weight) / (weight + 2)) / 10]));
}

export function makeIndex(texts: readonly SectionText[]): SearchIndex {
  const words = new Map<string, number[]>();
  for (const [number, text] of texts.entries()) {
    for (const [word, weight] of weightsOf(text)) {
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

/** The best sections for a query, the best one first. The last word may still be typed: words that begin with it fit. */
export function find({ sections, words }: SearchIndex, query: string, limit: number): Section[] {
  const wanted = [...new Set(stemsOf(query))];
  const scores = new Map<number, number>();
  const hits = new Map<number, number>();
  for (const [position, word] of wanted.entries()) {
    const isLast = position === wanted.length - 1;
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
  // A section with all words comes before one with a word that is rare.
  const rank = (section: number) => (scores.get(section) ?? 0) * ((hits.get(section) ?? 0) / wanted.length) ** 2;
  return [...scores.keys()]
    .toSorted((one, other) => rank(other) - rank(one) || one - other)
    .slice(0, limit)
    .flatMap((section) => sections[section] ?? []);
}
