import { isUtf8 } from 'node:buffer';
import { folded, type Layer } from './layer.ts';
import { escapeLayers, mostDecoded, plainLayers } from './plain-layers.ts';
import type { DecodingWork } from './text-runs.ts';

/** Removes credentials from texts. */
export type Redactor = {
  /** The text with `[redacted]` in place of each credential, in whatever case, escapes and usual encoding it is there. */
  text(text: string): string;
  /** Length of the longest form of a credential, 1 at least. */
  readonly longest: number;
  /** Whether a text was left out because the search in it, or in those before it, would take too long. */
  readonly isSpent: boolean;
};

const mark = '[redacted]';
/**
 * Limits of the work on the texts of one redactor: their characters times the credentials, and so many more for each
 * credential and at least for each text. Of one text: the characters of all credentials, and those that are compared in
 * vain. A text beyond them is left out.
 */
const most = { work: 1_000_000, perCredential: 2000, perText: 100, characters: 40_000, inVain: 2_000_000 };
/** A shorter credential would match ordinary text. */
const shortest = 4;
/** A part of a Base64 text is looked for only if it has this many characters. */
const shortestPart = 8;
/** Longest text that is searched for at once, in characters. */
const longestPiece = 200;
/** What a character takes at most: six as `\u0041`, and six times as many where that is escaped again. */
const longestEscape = 6;
/** The same for a credential of this length: one that is long is not expected in every spelling at a cut. */
const mostPerCharacter = (length: number) => (length <= 100 ? 36 : length <= 4000 ? longestEscape : 3);

/**
 * A redactor is prepared once for the texts that are read in one turn of the event loop: together they have the limits of
 * one text. On a thread, which has a limit of time, each text has them for itself. The forms of the credentials are made
 * when the first text comes.
 */
export function redactor(
  credentials: readonly string[],
  place: 'in one turn' | 'on a thread' = 'in one turn',
): Redactor {
  return new PreparedRedactor(credentials, place === 'in one turn');
}

/** A class, because each answer makes one, and most use none of it. */
class PreparedRedactor implements Redactor {
  readonly #credentials: readonly string[];
  isSpent = false;
  #workLeft: number;
  readonly #decoding: DecodingWork;
  /** A request may send a credential many times, which is no more work. */
  #distinct: readonly string[] | undefined;
  #forms: Map<string, string[]> | undefined;

  constructor(credentials: readonly string[], isShared: boolean) {
    this.#credentials = credentials;
    this.#workLeft = isShared ? most.work : Number.POSITIVE_INFINITY;
    this.#decoding = { left: isShared ? mostDecoded : Number.POSITIVE_INFINITY };
  }

  get longest(): number {
    return Math.max(1, ...this.#sensitive().filter(isLong).map(longestForm));
  }

  text(text: string): string {
    const possible = this.#sensitive().filter((value) => isLong(value) && value.length <= text.length * longestEscape);
    if (possible.length === 0) return text;
    if (!this.#takeWork(possible, text)) {
      this.isSpent = true;
      return mark;
    }
    if (possible.reduce((sum, { length }) => sum + length, 0) > most.characters) return mark;
    const wanted = possible.flatMap((value) => this.#formsOf(value));
    const work: Work = { left: most.inVain };
    const least = Math.max(
      shortestPart,
      wanted.reduce((length, form) => Math.min(length, form.length), text.length),
    );
    const layers = plainLayers(text, least, this.#decoding);
    if (this.#decoding.isShort) {
      this.isSpent = true;
      return mark;
    }
    const found = layers.flatMap((layer) =>
      wanted.flatMap((form) => [...findAll(layer, form, work), ...findLostEnd(layer, form, work)]),
    );
    if (work.left < 0) return mark;
    return found.length === 0 ? text : without(Buffer.from(text), found);
  }

  #sensitive(): readonly string[] {
    this.#distinct ??= [...new Set(this.#credentials)];
    return this.#distinct;
  }

  /** False where it would be more than is left, or than one text may take. */
  #takeWork(possible: readonly string[], { length }: string): boolean {
    const fresh = possible.filter((value) => !this.#forms?.has(value)).length;
    const work = possible.length * (length + most.perText) + fresh * most.perCredential;
    if (work > Math.min(this.#workLeft, most.work) || this.#decoding.left <= 0) return false;
    this.#workLeft -= work;
    return true;
  }

  #formsOf(value: string): readonly string[] {
    this.#forms ??= new Map();
    const made = this.#forms.get(value) ?? formsOf(value);
    this.#forms.set(value, made);
    return made;
  }
}

function longestForm(value: string): number {
  const length = Buffer.byteLength(value);
  return length * mostPerCharacter(length);
}

function isLong(value: string): boolean {
  return value.length >= shortest;
}

/** Removes the credentials of a call from a text. */
export function redact(text: string, sensitive: readonly string[]): string {
  return redactor(sensitive).text(text);
}

/** Forms in which an upstream may echo a credential, besides escapes, as layers are folded. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const forms = [value, ...pairIn(value), bytes.toString('hex'), bytes.toString('base64')];
  const parts = [0, 1, 2].flatMap((shift) => partOf(bytes, shift));
  // A credential may itself have what looks like an escape, and then loses it in the same layer as the text around it.
  // In JSON, whose escapes stand around those, it loses them in another order.
  const written = forms.flatMap((form) => (/["\\]/.test(form) ? [form, JSON.stringify(form).slice(1, -1)] : [form]));
  const plain = new Set(written.flatMap((form) => escapeLayers(form).map(({ text }) => text)));
  return [...plain, ...parts.map(folded)].filter(isLong);
}

/** The token of type Basic is the base64 of `user:password`, of which an upstream would echo the pair or the password. */
function pairIn(value: string): string[] {
  const bytes = Buffer.from(value, 'base64');
  const texts = isUtf8(bytes) ? [bytes.toString('utf8')] : [bytes.toString('latin1')];
  return texts.filter(isPair).flatMap((pair) => [pair, pair.slice(pair.indexOf(':', 1) + 1)]);
}

/** Whether a text is `user:password`: printable, with a colon between its first and its last character. */
function isPair(text: string): boolean {
  const colon = text.indexOf(':', 1);
  return colon > 0 && colon < text.length - 1 && !/\p{C}/u.test(text);
}

/** What Base64 makes of a value behind `shift` bytes more than a multiple of three, whatever is around it. */
function partOf(value: Buffer, shift: number): string[] {
  const whole = Buffer.concat([Buffer.alloc(shift), value]);
  const end = Math.floor((whole.length * 4) / 3);
  const part = whole.toString('base64').slice(Math.ceil((shift * 4) / 3), end);
  return part.length < shortestPart ? [] : [part];
}

type Range = [from: number, end: number];

/** Characters that may still be compared in vain, for one text. */
type Work = { left: number };

/** Where a text has a form. Ends early, with no work left, where its pieces are everywhere and the form is not. */
function* occurrences(text: string, form: string, work: Work): Generator<number> {
  // The search for a longer one may take the length of the text times that of the form.
  const piece = form.slice(0, longestPiece);
  let at = text.indexOf(piece);
  while (at >= 0 && work.left >= 0) {
    const isWhole = piece === form || text.startsWith(form, at);
    if (isWhole) yield at;
    else work.left -= form.length;
    at = text.indexOf(piece, isWhole ? at + form.length : at + 1);
  }
}

function findAll({ text, spans }: Layer, form: string, work: Work): Range[] {
  return Array.from(occurrences(text, form, work), (at) => {
    const end = at + form.length;
    return spans ? [spans.starts[at] as number, spans.ends[end - 1] as number] : [at, end];
  });
}

/** What begins an escape. */
const opening = /[%\\&]/;
/** Most characters at the end of a credential that may be the beginning of an escape. */
const longestEnd = 8;

/**
 * Credentials with an end that was read as the beginning of an escape, as the `\` at the end of one in quotes. The ranges
 * include the rest of the escape.
 */
function findLostEnd({ text, spans }: Layer, form: string, work: Work): Range[] {
  const tail = form.slice(-Math.min(form.length >> 2, longestEnd));
  if (!spans || form.length < shortestPart || !opening.test(tail)) return [];
  const found: Range[] = [];
  const head = form.slice(0, form.length - tail.length + tail.search(opening));
  for (const at of occurrences(text, head, work)) {
    let length = head.length;
    while (length < form.length && text[at + length] === form[length]) length++;
    // Behind the end of the layer there may be an escape that means nothing.
    const [from = Number.POSITIVE_INFINITY, end = 0] = [spans.starts[at + length], spans.ends[at + length]];
    const isEscape = end - from > 1;
    // Between two characters that leaves a gap, as a line break does.
    const isGap = from > (spans.ends[at + length - 1] as number);
    if ((isEscape || isGap) && opening.test(form[length] ?? ''))
      found.push([spans.starts[at] as number, isEscape ? end : from]);
  }
  return found;
}

/** The text with one mark in place of ranges that overlap. */
function without(bytes: Buffer, ranges: Range[]): string {
  ranges.sort((a, b) => a[0] - b[0]);
  let clean = '';
  let done = 0;
  let marked = -1;
  for (const [from, end] of ranges) {
    if (from >= marked) clean += bytes.toString('utf8', done, from) + mark;
    marked = Math.max(marked, end);
    done = marked;
  }
  return clean + bytes.toString('utf8', done);
}
