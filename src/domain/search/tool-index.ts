import { effectOfTool } from './effects.ts';
import { termsOf } from './words.ts';

/** Searchable fields of a tool. */
export type SearchedTool = {
  name: string;
  title: string | undefined;
  description: string;
  method: string;
  url: string;
  arguments: readonly string[];
  tags: readonly string[];
};

/**
 * An inverted index of tools. The occurrences of the term with number `t` are those from `starts[t]` to `starts[t +
 * 1]`. Each has a tool position, the term's weight in the tool, and a flag for occurrence in the tool's name.
 */
export type ToolIndex = {
  readonly size: number;
  readonly numbers: ReadonlyMap<string, number>;
  readonly starts: Uint32Array;
  readonly tools: Uint32Array;
  readonly weights: Float32Array;
  readonly inName: Uint8Array;
  /** Sums of the rarities of the terms in each tool's name. */
  readonly nameRarities: Float32Array;
  /** Effect of each tool on the upstream's data. */
  readonly effects: Uint8Array;
  /** Tool positions by lowercase name. */
  readonly names: ReadonlyMap<string, number>;
};

type Part = { weight: number; usual: number; norm: number };

/**
 * Weight of a term in each field, the typical number of terms there, and how strongly a longer field reduces the weight
 * of each term (BM25F: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.5). The numbers
 * were fitted to questions about ten APIs. `test/gateway/search-quality.test.ts` also uses APIs that they were not
 * fitted to.
 */
const parts = {
  name: { weight: 3.6, usual: 1.8, norm: 1 },
  title: { weight: 2, usual: 4, norm: 0.5 },
  description: { weight: 4.4, usual: 9.6, norm: 0.66 },
  arguments: { weight: 0.58, usual: 5.1, norm: 0.22 },
  tags: { weight: 0.28, usual: 0.95, norm: 0.97 },
  path: { weight: 3.5, usual: 4.2, norm: 1 },
} as const;

/**
 * Maximum characters of a description and of a path that are searched, and maximum terms of a tool. They bound the
 * index size.
 */
const longestDescription = 1000;
const longestPath = 300;
const mostTerms = 400;
/**
 * Characters of tools, or occurrences, that are indexed before yielding to the event loop: a few milliseconds at most.
 */
const turnLength = 5000;

type Occurrences = { tools: number[]; weights: number[]; inName: number[] };

/** Builds an index of `size` tools in steps. Each `yield` is an opportunity to let other work run. */
export function* indexing(size: number, toolAt: (position: number) => SearchedTool): Generator<void, ToolIndex> {
  const stems = new Map<string, string>();
  const occurrences = new Map<string, Occurrences>();
  const names = new Map<string, number>();
  const effects = new Uint8Array(size);
  let done = 0;
  for (let position = 0; position < size; position++) {
    const tool = toolAt(position);
    if (done > turnLength) {
      yield;
      done = 0;
    }
    names.set(tool.name.toLowerCase(), position);
    effects[position] = effectOfTool(tool.method, tool.description);
    // Repetitions in a name such as `post_customers_customer_cards` come from the path and carry no meaning.
    const nameTerms = new Set(termsOf(tool.name, stems));
    for (const [term, weight] of weightsOf(tool, nameTerms, stems)) {
      const found = occurrences.get(term) ?? { tools: [], weights: [], inName: [] };
      found.tools.push(position);
      found.weights.push(weight);
      found.inName.push(nameTerms.has(term) ? 1 : 0);
      occurrences.set(term, found);
    }
    done += lengthOf(tool);
  }
  yield;
  return { ...(yield* packed(occurrences, size)), size, names, effects };
}

/** Packs the occurrences into flat arrays, which take a fifth of the memory. */
function* packed(
  occurrences: ReadonlyMap<string, Occurrences>,
  size: number,
): Generator<void, Omit<ToolIndex, 'size' | 'names' | 'effects'>> {
  let total = 0;
  for (const found of occurrences.values()) total += found.tools.length;
  const numbers = new Map<string, number>();
  const starts = new Uint32Array(occurrences.size + 1);
  const tools = new Uint32Array(total);
  const weights = new Float32Array(total);
  const inName = new Uint8Array(total);
  const nameRarities = new Float32Array(size);
  let at = 0;
  let done = 0;
  for (const [term, found] of occurrences) {
    numbers.set(term, numbers.size);
    tools.set(found.tools, at);
    weights.set(found.weights, at);
    inName.set(found.inName, at);
    const rarity = rarityOf(found.tools.length, size);
    for (const [index, tool] of found.tools.entries()) {
      if (found.inName[index]) nameRarities[tool] = (nameRarities[tool] as number) + rarity;
    }
    at += found.tools.length;
    starts[numbers.size] = at;
    done += found.tools.length + 10;
    if (done > turnLength) {
      yield;
      done = 0;
    }
  }
  return { numbers, starts, tools, weights, inName, nameRarities };
}

/** Returns the inverse document frequency of BM25 for a term that occurs in `count` of `size` tools. */
export function rarityOf(count: number, size: number): number {
  return Math.log(1 + (Math.max(0, size - count) + 0.5) / (count + 0.5));
}

function lengthOf(tool: SearchedTool): number {
  const { name, description, url } = tool;
  const texts = name.length + Math.min(description.length, longestDescription) + Math.min(url.length, longestPath);
  return texts + 20 * tool.arguments.length + 50;
}

/** Returns the terms of a tool and their weights. */
function weightsOf(
  tool: SearchedTool,
  nameTerms: ReadonlySet<string>,
  stems: Map<string, string>,
): Map<string, number> {
  const weights = new Map<string, number>();
  const add = (terms: readonly string[], { weight, usual, norm }: Part) => {
    const share = weight / (1 - norm + norm * Math.max(0.5, terms.length / usual));
    for (const term of terms) {
      const before = weights.get(term);
      if (before !== undefined || weights.size < mostTerms) weights.set(term, (before ?? 0) + share);
    }
  };
  add([...nameTerms], parts.name);
  if (tool.title !== undefined) add(termsOf(tool.title, stems), parts.title);
  add(termsOf(tool.description.slice(0, longestDescription), stems), parts.description);
  add(termsOf(tool.arguments.join(' '), stems), parts.arguments);
  add(termsOf(tool.tags.join(' '), stems), parts.tags);
  add([...new Set(termsOf(fixedPath(tool.url), stems))], parts.path);
  return weights;
}

/** Returns the segments of a URL's path that are neither arguments nor variables. */
function fixedPath(url: string): string {
  const [path = ''] = url
    .slice(0, longestPath)
    .replace(/^[a-z]+:\/\/[^/]*/i, '')
    .split(/[?#]/, 1);
  const segments = path.split('/').filter((segment) => !/[:{]/.test(segment));
  return segments.join(' ');
}
