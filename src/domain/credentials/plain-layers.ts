import { withoutEscapes } from './escapes.ts';
import { firstLayer, type Layer } from './layer.ts';
import type { DecodingWork } from './text-runs.ts';
import { transcriptions } from './transcriptions.ts';

/** A text without one encoding after another, to find in it what an upstream has encoded. */

/** How many encodings may be nested, and how many layers a text may have in all. */
const most = { depth: 6, layers: 64 };
/** Most characters that are decoded for one text, all layers together. */
export const mostDecoded = 320_000;
/** What a layer takes of them besides its length. */
const perLayer = 200;

/** A layer, and the encodings that were taken away above it. */
type Nested = { layer: Layer; depth: number };

/** The text as it is, then without its escapes, until there are none. */
export function escapeLayers(text: string): Layer[] {
  const layers = new Layers(mostDecoded);
  layers.add({ layer: firstLayer(text), depth: 1 });
  return layers.all;
}

/** The budget suffices for nearly all layers of a text of at most so many characters. */
const longestShortText = Math.floor(mostDecoded / most.layers) - perLayer;

/**
 * The same, and what each of these layers is if it is a transcription of a text of at least `least` characters. Takes what
 * it decodes from `budget`, and says there whether the texts before this one have left too little: for its escapes, or for
 * anything that a short text may be.
 */
export function plainLayers(text: string, least: number, budget: DecodingWork): Layer[] {
  const before = Math.min(mostDecoded, budget.left);
  const layers = new Layers(before);
  layers.add({ layer: firstLayer(text), depth: 1 });
  const hasEscapes = !layers.work.isShort;
  if (text.length <= mostDecoded) addTranscriptions(layers, least);
  const isDecoded = !layers.work.isShort && layers.work.left > 0;
  budget.left -= before - layers.work.left;
  budget.isShort = before < mostDecoded && !(text.length <= longestShortText ? isDecoded : hasEscapes);
  return layers.all;
}

function addTranscriptions(layers: Layers, least: number): void {
  for (let next = layers.next(); next && layers.work.left > 0; next = layers.next()) {
    for (const transcribed of transcriptions) {
      for (const layer of transcribed(next.layer, least, layers.work)) layers.add({ layer, depth: next.depth + 1 });
    }
  }
}

/** The layers of a text while they are found. */
class Layers {
  readonly all: Layer[] = [];
  readonly work: DecodingWork;
  readonly #seen = new Map<string, number>();
  #waiting: Nested[] = [];

  constructor(left: number) {
    this.work = { left };
  }

  /** Adds a layer and those below it, each without the escapes of the one above. */
  add(first: Nested): void {
    for (let { layer, depth } = first; this.all.length < most.layers; depth++) {
      // Two layers may have the same transcription. Only of the one that is less deep there may be more to find.
      const key = `${layer.spans?.starts[0]}:${layer.text}`;
      if ((this.#seen.get(key) ?? most.depth + 1) <= depth) return;
      this.#seen.set(key, depth);
      this.all.push(layer);
      this.work.left -= perLayer;
      if (depth === most.depth) return;
      this.#waiting.push({ layer, depth });
      if (layer.raw.length > this.work.left) {
        this.work.isShort = true;
        return;
      }
      const next = withoutEscapes(layer);
      if (!next) return;
      this.work.left -= layer.raw.length;
      layer = next;
    }
  }

  /** A layer whose transcriptions were not looked for: the first one, then the shortest, which has least around what it holds. */
  next(): Nested | undefined {
    if (this.all.length >= most.layers) return undefined;
    const [first] = this.#waiting;
    if (!first) return undefined;
    const isShorter = (one: Nested, other: Nested) => one.layer.raw.length < other.layer.raw.length;
    const chosen =
      first.depth === 1 ? first : this.#waiting.reduce((best, other) => (isShorter(other, best) ? other : best), first);
    this.#waiting = this.#waiting.filter((each) => each !== chosen);
    return chosen;
  }
}
