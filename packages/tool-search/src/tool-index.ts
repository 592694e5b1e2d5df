import { getToolEffect } from './effects.ts';
import { getTerms } from './words.ts';

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

type FieldWeight = { weight: number; typicalTerms: number; norm: number };

/**
 * Weight of a term in each field, the typical number of terms there, and how strongly a longer field reduces the weight
 * of each term (BM25F: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.5). The numbers
 * were fitted to questions about ten APIs. `test/gateway/search-quality.test.ts` also uses APIs that they were not
 * fitted to.
 */
const fieldWeights = {
  name: { weight: 3.6, typicalTerms: 1.8, norm: 1 },
  title: { weight: 2, typicalTerms: 4, norm: 0.5 },
  description: { weight: 4.4, typicalTerms: 9.6, norm: 0.66 },
  arguments: { weight: 0.58, typicalTerms: 5.1, norm: 0.22 },
  tags: { weight: 0.28, typicalTerms: 0.95, norm: 0.97 },
  path: { weight: 3.5, typicalTerms: 4.2, norm: 1 },
} as const;

/**
 * Maximum characters of a description and of a path that are searched, and maximum terms of a tool. They bound the
 * index size.
 */
const maxDescriptionLength = 1000;
const maxPathLength = 300;
const maxTerms = 400;
/**
 * Characters of tools, or occurrences, that are indexed before yielding to the event loop: a few milliseconds at most.
 */
const chunkLength = 5000;

type Occurrences = { tools: number[]; weights: number[]; inName: number[] };

/** Builds an index of `size` tools in steps. Each `yield` is an opportunity to let other work run. */
export function* buildIndex(size: number, getTool: (position: number) => SearchedTool): Generator<void, ToolIndex> {
  const stems = new Map<string, string>();
  const occurrences = new Map<string, Occurrences>();
  const names = new Map<string, number>();
  const effects = new Uint8Array(size);
  let processed = 0;
  for (let position = 0; position < size; position++) {
    const tool = getTool(position);
    if (processed > chunkLength) {
      yield;
      processed = 0;
    }
    names.set(tool.name.toLowerCase(), position);
    effects[position] = getToolEffect(tool.method, tool.description);
    // Repetitions in a name such as `post_customers_customer_cards` come from the path and carry no meaning.
    const nameTerms = new Set(getTerms(tool.name, stems));
    for (const [term, weight] of getTermWeights(tool, nameTerms, stems)) {
      const termOccurrences = occurrences.get(term) ?? { tools: [], weights: [], inName: [] };
      termOccurrences.tools.push(position);
      termOccurrences.weights.push(weight);
      termOccurrences.inName.push(nameTerms.has(term) ? 1 : 0);
      occurrences.set(term, termOccurrences);
    }
    processed += getWorkLength(tool);
  }
  yield;
  return { ...(yield* packIndex(occurrences, size)), size, names, effects };
}

/** Packs the occurrences into flat arrays, which take a fifth of the memory. */
function* packIndex(
  occurrences: ReadonlyMap<string, Occurrences>,
  size: number,
): Generator<void, Omit<ToolIndex, 'size' | 'names' | 'effects'>> {
  let total = 0;
  for (const termOccurrences of occurrences.values()) total += termOccurrences.tools.length;
  const numbers = new Map<string, number>();
  const starts = new Uint32Array(occurrences.size + 1);
  const tools = new Uint32Array(total);
  const weights = new Float32Array(total);
  const inName = new Uint8Array(total);
  const nameRarities = new Float32Array(size);
  let at = 0;
  let processed = 0;
  for (const [term, termOccurrences] of occurrences) {
    numbers.set(term, numbers.size);
    tools.set(termOccurrences.tools, at);
    weights.set(termOccurrences.weights, at);
    inName.set(termOccurrences.inName, at);
    const rarity = getRarity(termOccurrences.tools.length, size);
    for (const [index, tool] of termOccurrences.tools.entries()) {
      if (termOccurrences.inName[index]) nameRarities[tool] = (nameRarities[tool] as number) + rarity;
    }
    at += termOccurrences.tools.length;
    starts[numbers.size] = at;
    processed += termOccurrences.tools.length + 10;
    if (processed > chunkLength) {
      yield;
      processed = 0;
    }
  }
  return { numbers, starts, tools, weights, inName, nameRarities };
}

/** Returns the inverse document frequency of BM25 for a term that occurs in `count` of `size` tools. */
export function getRarity(count: number, size: number): number {
  return Math.log(1 + (Math.max(0, size - count) + 0.5) / (count + 0.5));
}

function getWorkLength(tool: SearchedTool): number {
  const { name, description, url } = tool;
  const textLength =
    name.length + Math.min(description.length, maxDescriptionLength) + Math.min(url.length, maxPathLength);
  return textLength + 20 * tool.arguments.length + 50;
}

/** Returns the terms of a tool and their weights. */
function getTermWeights(
  tool: SearchedTool,
  nameTerms: ReadonlySet<string>,
  stems: Map<string, string>,
): Map<string, number> {
  const weights = new Map<string, number>();
  const add = (terms: readonly string[], { weight, typicalTerms, norm }: FieldWeight) => {
    const addedWeight = weight / (1 - norm + norm * Math.max(0.5, terms.length / typicalTerms));
    for (const term of terms) {
      const previousWeight = weights.get(term);
      if (previousWeight !== undefined || weights.size < maxTerms)
        weights.set(term, (previousWeight ?? 0) + addedWeight);
    }
  };
  add([...nameTerms], fieldWeights.name);
  if (tool.title !== undefined) add(getTerms(tool.title, stems), fieldWeights.title);
  add(getTerms(tool.description.slice(0, maxDescriptionLength), stems), fieldWeights.description);
  add(getTerms(tool.arguments.join(' '), stems), fieldWeights.arguments);
  add(getTerms(tool.tags.join(' '), stems), fieldWeights.tags);
  add([...new Set(getTerms(getFixedPath(tool.url), stems))], fieldWeights.path);
  return weights;
}

/** Returns the segments of a URL's path that are neither arguments nor variables. */
function getFixedPath(url: string): string {
  const [path = ''] = url
    .slice(0, maxPathLength)
    .replace(/^[a-z]+:\/\/[^/]*/i, '')
    .split(/[?#]/, 1);
  const segments = path.split('/').filter((segment) => !/[:{]/.test(segment));
  return segments.join(' ');
}
