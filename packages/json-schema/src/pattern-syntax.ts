/** A character set of a pattern. */
export type CharacterSet = {
  isNegated: boolean;
  /** First and last code of each range, in sequence. */
  ranges: readonly number[];
  named: readonly NamedSet[];
};

type NamedSet = (code: number) => boolean;

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isSpace = (code: number) => /\s/u.test(String.fromCodePoint(code));
const negate =
  (set: NamedSet): NamedSet =>
  (code) =>
    !set(code);

/** ECMAScript's `\w`. */
export function isWordCharacter(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f;
}

/** Sets of `\d` and similar escapes, by letter. */
const escapedSets: ReadonlyMap<string, NamedSet> = new Map([
  ['d', isDigit],
  ['D', negate(isDigit)],
  ['w', isWordCharacter],
  ['W', negate(isWordCharacter)],
  ['s', isSpace],
  ['S', negate(isSpace)],
]);

/** Unicode properties that a pattern may name. The tables of other properties take long to build. */
const propertyNames: readonly string[] = [
  ...['L', 'Letter', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'M', 'Mn', 'N', 'Number', 'Nd', 'P', 'Punctuation', 'S', 'Sc'],
  ...['Z', 'Zs', 'C', 'Cc', 'Alphabetic', 'Uppercase', 'Lowercase', 'Emoji'],
  ...['Latin', 'Greek', 'Cyrillic', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Arabic', 'Hebrew'].map(
    (script) => `Script=${script}`,
  ),
];
const properties = new Map(propertyNames.map((name) => [name, new RegExp(`\\p{${name}}`, 'u')]));

/** Returns the set of `\p{name}`, or of `\P{name}` if negated; undefined for an unsupported property. */
function propertySet(name: string, isNegated: boolean): NamedSet | undefined {
  const property = properties.get(name.replace(/^(gc|General_Category)=|^(sc)=/, (_, gc) => (gc ? '' : 'Script=')));
  return property && ((code) => property.test(String.fromCodePoint(code)) !== isNegated);
}

/** Returns true if a set contains the character with this code. */
export function hasCode({ isNegated, ranges, named }: CharacterSet, code: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) {
    if (code >= (ranges[i] as number) && code <= (ranges[i + 1] as number)) return !isNegated;
  }
  for (const set of named) if (set(code)) return !isNegated;
  return isNegated;
}

/** Returns the maximum number of comparisons for testing one character. */
export function getComparisonCost({ ranges, named }: CharacterSet): number {
  return 1 + (ranges.length >> 4) + 4 * named.length;
}

/** The set of `.` */
const anyButLineEnd: CharacterSet = {
  isNegated: true,
  ranges: [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029],
  named: [],
};

/** A node of a pattern. `all` is a sequence, `any` a choice. */
export type PatternNode =
  | { kind: 'set'; set: CharacterSet }
  | { kind: 'character'; code: number }
  | { kind: 'start' | 'end' | 'boundary' | 'inside' }
  | { kind: 'all' | 'any'; nodes: readonly PatternNode[] }
  | { kind: 'repeat'; node: PatternNode; min: number; max: number };

/** An ECMAScript regular expression without features that cannot be matched in linear time. */
export type Pattern = {
  root: PatternNode;
  /** True if it is matched by code points (flag `u`), as JSON Schema recommends; false by code units. */
  isUnicode: boolean;
  /** Number of instructions of the compiled program. */
  size: number;
};

export const maxPatternLength = 1000;
/** Maximum instructions of a program. Counted repetitions are expanded: `[a-z]{1,2048}` has 4,095 instructions. */
export const maxInstructions = 5000;
const maxGroupDepth = 50;

/** A problem of a pattern, for the person who wrote it. */
class PatternError extends Error {}

/** Parses a pattern, or returns its problem. The time is proportional to the pattern's length. */
export function parsePattern(source: string): { pattern: Pattern } | { fault: string } {
  if (source.length > maxPatternLength) {
    return { fault: `has ${source.length} characters; allowed: at most ${maxPatternLength}` };
  }
  const isUnicode = isValidSyntax(source, 'u');
  if (!isUnicode && !isValidSyntax(source, '')) return { fault: 'is not an ECMAScript regular expression' };
  try {
    const root = new Parser(source, isUnicode).parse();
    const size = countInstructions(root) + 1;
    if (size > maxInstructions)
      throw new PatternError(
        `repeats too much: it expands to more than ${maxInstructions} instructions; use smaller counts, * or +, or maxLength`,
      );
    return { pattern: { root, isUnicode, size } };
  } catch (error) {
    if (error instanceof PatternError) return { fault: error.message };
    throw error;
  }
}

/** Checks the syntax without Unicode properties, because their tables take long to build. */
function isValidSyntax(source: string, flags: string): boolean {
  const checkedSource = flags === 'u' ? source.replaceAll(/\\[pP]\{[\w=]{1,60}\}/g, '\\d') : source;
  try {
    return new RegExp(checkedSource, flags) !== undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Returns the number of instructions. */
function countInstructions(node: PatternNode): number {
  if (node.kind === 'all') return node.nodes.reduce((sum, inner) => sum + countInstructions(inner), 0);
  if (node.kind === 'any') return node.nodes.reduce((sum, inner) => sum + countInstructions(inner) + 2, -2);
  if (node.kind !== 'repeat') return 1;
  // Copies of an empty node take time too.
  const size = Math.max(1, countInstructions(node.node));
  return node.min * size + (node.max === Number.POSITIVE_INFINITY ? size + 2 : (node.max - node.min) * (size + 1));
}

const controlLetters: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };
const toSet = (named: NamedSet): CharacterSet => ({ isNegated: false, ranges: [], named: [named] });

const quantifier = /[*+?]\??|\{(\d+)(?:(,)(\d*))?\}\??/y;
const groupSign = /\?(?:<?[=!]|<[^>]*>|[\w-]*:)/y;
const propertyEscape = /([pP])\{([^}]*)\}/y;
/**
 * Escapes of one character by its code: `\0`, `\cA`, `\x41`, `\u0041`, and with the flag u a surrogate pair and
 * `\u{41}`.
 */
const codeEscape = /(?<zero>0)(?!\d)|c(?<letter>[A-Za-z])|x(?<hex>[\dA-Fa-f]{2})|u(?<unit>[\dA-Fa-f]{4})/y;
const unicodeCodeEscape = new RegExp(
  String.raw`u(?<high>[Dd][89ABab][\dA-Fa-f]{2})\\u(?<low>[Dd][C-Fc-f][\dA-Fa-f]{2})|u\{(?<point>[\dA-Fa-f]+)\}|${codeEscape.source}`,
  'y',
);

function getEscapedCode({ groups = {} }: RegExpExecArray): number {
  const { letter, hex, unit, high, low, point } = groups;
  const parseHex = (digits: string) => Number.parseInt(digits, 16);
  if (letter !== undefined) return letter.charCodeAt(0) % 32;
  if (high !== undefined && low !== undefined)
    return (parseHex(high) - 0xd800) * 0x400 + parseHex(low) - 0xdc00 + 0x10000;
  return parseHex(hex ?? unit ?? point ?? '0');
}

/** Parses a text that is known to be a valid regular expression. */
class Parser {
  readonly #source: string;
  readonly #isUnicode: boolean;
  #at = 0;
  #depth = 0;

  constructor(source: string, isUnicode: boolean) {
    this.#source = source;
    this.#isUnicode = isUnicode;
  }

  parse(): PatternNode {
    return this.#choice();
  }

  #choice(): PatternNode {
    const nodes = [this.#sequence()];
    while (this.#skip('|')) nodes.push(this.#sequence());
    return nodes.length === 1 ? (nodes[0] as PatternNode) : { kind: 'any', nodes };
  }

  #sequence(): PatternNode {
    const nodes: PatternNode[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] as string))
      nodes.push(this.#quantified());
    return { kind: 'all', nodes };
  }

  #quantified(): PatternNode {
    const node = this.#atom();
    const sign = this.#source[this.#at] ?? '';
    if (!'*+?{'.includes(sign) || sign === '') return node;
    const match = this.#match(quantifier);
    if (!match) return node;
    const [text, from, comma, to = ''] = match;
    if (from === undefined) {
      return { kind: 'repeat', node, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Number.POSITIVE_INFINITY };
    }
    if (Math.max(Number(from), Number(to)) > maxInstructions) {
      throw new PatternError(`has ${text.slice(0, 20)}; allowed: counts of at most ${maxInstructions}, or maxLength`);
    }
    const min = Number(from);
    const max = comma === undefined ? min : to === '' ? Number.POSITIVE_INFINITY : Number(to);
    return { kind: 'repeat', node, min, max };
  }

  #atom(): PatternNode {
    switch (this.#source[this.#at]) {
      case '^':
        return this.#assertion('start', 1);
      case '$':
        return this.#assertion('end', 1);
      case '(':
        this.#at++;
        return this.#group();
      case '[':
        this.#at++;
        return this.#class();
      case '.':
        this.#at++;
        return { kind: 'set', set: anyButLineEnd };
      case '\\':
        if (this.#source[this.#at + 1] === 'b') return this.#assertion('boundary', 2);
        if (this.#source[this.#at + 1] === 'B') return this.#assertion('inside', 2);
        this.#at++;
        return this.#member(this.#escape(false));
      default:
        return { kind: 'character', code: this.#code() };
    }
  }

  #assertion(kind: 'start' | 'end' | 'boundary' | 'inside', length: number): PatternNode {
    this.#at += length;
    return { kind };
  }

  #group(): PatternNode {
    const [sign = ''] = this.#source[this.#at] === '?' ? (this.#match(groupSign) ?? []) : [];
    if (/[=!]$/.test(sign)) {
      throw new PatternError(
        `has "(${sign}", a lookaround, which can take exponential time; match the allowed text instead, or use several patterns in allOf, or "not"`,
      );
    }
    if (/^\?[\w-]+:$/.test(sign)) throw new PatternError(`has "(${sign}", which sets flags; use [Aa] instead of flags`);
    if (++this.#depth > maxGroupDepth)
      throw new PatternError(`has nested groups; allowed: at most ${maxGroupDepth} levels`);
    const node = this.#choice();
    this.#depth--;
    this.#skip(')');
    return node;
  }

  #member(member: number | NamedSet): PatternNode {
    return typeof member === 'number' ? { kind: 'character', code: member } : { kind: 'set', set: toSet(member) };
  }

  #class(): PatternNode {
    const isNegated = this.#skip('^');
    const ranges: number[] = [];
    const sets: NamedSet[] = [];
    while (!this.#skip(']')) {
      const firstMember = this.#classAtom();
      const members = [firstMember];
      if (this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']') {
        this.#at++;
        const lastMember = this.#classAtom();
        if (typeof firstMember === 'number' && typeof lastMember === 'number') {
          ranges.push(firstMember, lastMember);
          continue;
        }
        // Without the flag u, a range that begins or ends in a set has three members (ECMAScript, B.1.2.7).
        members.push(0x2d, lastMember);
      }
      for (const member of members) {
        if (typeof member === 'number') ranges.push(member, member);
        else sets.push(member);
      }
    }
    // Slices have no spare capacity.
    return { kind: 'set', set: { isNegated, ranges: ranges.slice(), named: sets.slice() } };
  }

  /** Parses a code, or a set such as `\d`. */
  #classAtom(): number | NamedSet {
    return this.#skip('\\') ? this.#escape(true) : this.#code();
  }

  /** Parses the text after a backslash. */
  #escape(isInClass: boolean): number | NamedSet {
    const letter = this.#source[this.#at] ?? '';
    const set = escapedSets.get(letter);
    if (set) {
      this.#at++;
      return set;
    }
    if (this.#isUnicode && (letter === 'p' || letter === 'P')) return this.#property();
    if (isInClass && this.#skip('b')) return 8;
    if (isInClass && this.#isUnicode && this.#skip('-')) return 0x2d;
    if (/[1-9]/.test(letter) || (letter === 'k' && this.#source[this.#at + 1] === '<')) {
      throw new PatternError(
        `has "\\${letter}", a backreference, which can take exponential time; match the allowed text without it`,
      );
    }
    return this.#escapedCode(letter);
  }

  #escapedCode(letter: string): number {
    const control = controlLetters[letter];
    if (control !== undefined) {
      this.#at++;
      return control;
    }
    if ('0cux'.includes(letter)) {
      const match = this.#match(this.#isUnicode ? unicodeCodeEscape : codeEscape);
      if (match) return getEscapedCode(match);
      if (letter === '0' || letter === 'c') {
        throw new PatternError(`has "\\${letter}"; write the character as \\u and four hex digits`);
      }
    }
    return this.#code();
  }

  #property(): NamedSet {
    const [escapeText = '', sign, name = ''] = this.#match(propertyEscape) ?? [];
    const set = propertySet(name, sign === 'P');
    if (!set)
      throw new PatternError(`has "\\${escapeText.slice(0, 60)}"; allowed: \\p{…} of ${propertyNames.join(', ')}`);
    return set;
  }

  /** Reads the next character and returns its code. */
  #code(): number {
    const code = (this.#isUnicode ? this.#source.codePointAt(this.#at) : this.#source.charCodeAt(this.#at)) as number;
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }

  #skip(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #match(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.#at;
    const match = sticky.exec(this.#source) ?? undefined;
    this.#at += match?.[0].length ?? 0;
    return match;
  }
}
