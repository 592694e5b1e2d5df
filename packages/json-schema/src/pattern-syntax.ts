import { type AST, RegExpParser, RegExpSyntaxError } from '@eslint-community/regexpp';

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

/** Returns true for a character of `\w` in ECMAScript. */
export function isWordCharacter(code: number): boolean {
  return isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f;
}

const escapedSets = { digit: isDigit, word: isWordCharacter, space: isSpace };

/** Unicode properties that a pattern may name. The tables of other properties take long to build. */
const propertyNames: readonly string[] = [
  ...['L', 'Letter', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'M', 'Mn', 'N', 'Number', 'Nd', 'P', 'Punctuation', 'S', 'Sc'],
  ...['Z', 'Zs', 'C', 'Cc', 'Alphabetic', 'Uppercase', 'Lowercase', 'Emoji'],
  ...['Latin', 'Greek', 'Cyrillic', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Arabic', 'Hebrew'].map(
    (script) => `Script=${script}`,
  ),
];
const properties = new Map(propertyNames.map((name) => [name, createPropertySet(name)]));

function createPropertySet(name: string): NamedSet {
  const property = new RegExp(`\\p{${name}}`, 'u');
  return (code) => property.test(String.fromCodePoint(code));
}

const complement =
  (set: NamedSet): NamedSet =>
  (code) =>
    !set(code);

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

/** Set of characters that `.` matches. */
const anyButLineEnd: CharacterSet = {
  isNegated: true,
  ranges: [0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029],
  named: [],
};

export const maxPatternLength = 1000;
/** Maximum instructions of a program. Counted repetitions are expanded: `[a-z]{1,2048}` has 4,095 instructions. */
export const maxInstructions = 5000;
const maxGroupDepth = 50;

/** A problem of a pattern, for the person who wrote it. */
class PatternError extends Error {}

/** Operations of a program. A `split` continues at the next and at one other instruction, a `jump` at one other. */
export const opcodes = {
  set: 0,
  split: 1,
  jump: 2,
  start: 3,
  end: 4,
  boundary: 5,
  inside: 6,
  match: 7,
  character: 8,
} as const;
export const operationBits = 4;

/**
 * Number of instructions of a node, and a function that appends them to a program. Each instruction is one number: the
 * operation in its low bits, and above it the distance to the other instruction, the index of the set, or the character
 * code.
 */
type Code = { size: number; write: (program: number[]) => void };

/** ECMAScript regular expression without features that cannot be matched in linear time. */
export type Pattern = Code & {
  /** True if it is matched by code points (flag `u`), as JSON Schema recommends; false by code units. */
  isUnicode: boolean;
  sets: readonly CharacterSet[];
};

/** Parses a pattern, or returns its problem. The time is proportional to the pattern's length. */
export function parsePattern(source: string): { pattern: Pattern } | { fault: string } {
  if (source.length > maxPatternLength) {
    return { fault: `has ${source.length} characters; allowed: at most ${maxPatternLength}` };
  }
  try {
    const { root, isUnicode } = parseSyntax(source);
    const compiler = new Compiler();
    const { size, write } = compiler.compile(root);
    const writeAll = (program: number[]) => {
      write(program);
      program.push(encode('match'));
    };
    return { pattern: { isUnicode, sets: compiler.sets, size: size + 1, write: writeAll } };
  } catch (error) {
    if (error instanceof PatternError) return { fault: error.message };
    if (error instanceof RegExpSyntaxError) return { fault: 'is not an ECMAScript regular expression' };
    throw error;
  }
}

/** Parses with the flag `u`, or else without it. @throws RegExpSyntaxError; PatternError for an unknown property */
function parseSyntax(source: string): { root: AST.Pattern; isUnicode: boolean } {
  const parse = (isUnicode: boolean) =>
    new RegExpParser().parsePattern(source, 0, source.length, { unicode: isUnicode });
  try {
    return { root: parse(true), isUnicode: true };
  } catch (error) {
    if (!(error instanceof RegExpSyntaxError)) throw error;
    const [property] = /\\[pP]\{[^{]*\}$/.exec(source.slice(0, error.index + 1)) ?? [];
    if (property !== undefined) throw createPropertyError(property);
    return { root: parse(false), isUnicode: false };
  }
}

const createPropertyError = (text: string) =>
  new PatternError(`has "${text.slice(0, 60)}"; allowed: \\p{…} of ${propertyNames.join(', ')}`);

const encode = (operation: keyof typeof opcodes, operand = 0) => (operand << operationBits) | opcodes[operation];

const toCode = (instruction: number): Code => ({ size: 1, write: (program) => program.push(instruction) });

class Compiler {
  readonly sets: CharacterSet[] = [];
  #depth = 0;

  /** @throws PatternError for what cannot run in linear time, or is too large */
  compile(node: AST.Pattern | AST.Element): Code {
    switch (node.type) {
      case 'Pattern':
      case 'Group':
      case 'CapturingGroup':
        return this.#compileGroup(node);
      case 'Quantifier':
        return this.#compileRepetition(node);
      case 'Assertion':
        return toCode(encode(getAssertion(node)));
      case 'Backreference':
        throw createBackreferenceError(node);
      case 'Character':
        return toCode(encode('character', getCode(node)));
      default:
        return toCode(encode('set', this.sets.push(toCharacterSet(node as SetNode)) - 1));
    }
  }

  #compileGroup(node: AST.Pattern | AST.Group | AST.CapturingGroup): Code {
    if (node.type === 'Group' && node.modifiers)
      throw new PatternError(`has "(?${node.modifiers.raw}:", which sets flags; use [Aa] instead of flags`);
    if (this.#depth > maxGroupDepth)
      throw new PatternError(`has nested groups; allowed: at most ${maxGroupDepth} levels`);
    this.#depth++;
    const branches = node.alternatives.map(({ elements }) => elements.map((element) => this.compile(element)));
    this.#depth--;
    const sizes = branches.map((codes) => codes.reduce((sum, { size }) => sum + size, 2));
    const size = sizes.reduce((sum, branchSize) => sum + branchSize, -2);
    rejectSize(size);
    const write = (program: number[]) => {
      const end = program.length + size;
      for (const [index, codes] of branches.entries()) {
        const isLast = index === branches.length - 1;
        if (!isLast) program.push(encode('split', sizes[index]));
        for (const code of codes) code.write(program);
        if (!isLast) program.push(encode('jump', end - program.length));
      }
    };
    return { size, write };
  }

  #compileRepetition({ element, min, max, raw }: AST.Quantifier): Code {
    const isInfinite = max === Number.POSITIVE_INFINITY;
    if (Math.max(min, isInfinite ? 0 : max) > maxInstructions) {
      const text = raw.slice(element.raw.length, element.raw.length + 20);
      throw new PatternError(`has ${text}; allowed: counts of at most ${maxInstructions}, or maxLength`);
    }
    const code = this.compile(element);
    if (code.size === 0) return code;
    const optionalSize = isInfinite ? code.size + 2 : (max - min) * (code.size + 1);
    const size = min * code.size + optionalSize;
    rejectSize(size);
    const write = (program: number[]) => {
      const end = program.length + size;
      for (let copy = 0; copy < min; copy++) code.write(program);
      if (isInfinite) program.push(encode('split', optionalSize));
      if (isInfinite) code.write(program);
      if (isInfinite) program.push(encode('jump', -code.size - 1));
      for (let copy = min; copy < max && !isInfinite; copy++) {
        program.push(encode('split', end - program.length));
        code.write(program);
      }
    };
    return { size, write };
  }
}

function rejectSize(size: number): void {
  if (size >= maxInstructions)
    throw new PatternError(
      `repeats too much: it expands to more than ${maxInstructions} instructions; use smaller counts, * or +, or maxLength`,
    );
}

function getAssertion(node: AST.Assertion): 'start' | 'end' | 'boundary' | 'inside' {
  if (node.kind === 'start' || node.kind === 'end') return node.kind;
  if (node.kind === 'word') return node.negate ? 'inside' : 'boundary';
  throw new PatternError(
    `has "${/^\(\?<?[=!]/.exec(node.raw)?.[0]}", a lookaround, which can take exponential time; match the allowed text instead, or use several patterns in allOf, or "not"`,
  );
}

const createBackreferenceError = ({ raw }: AST.Backreference | AST.Character) =>
  new PatternError(
    `has "${raw.slice(0, 2)}", a backreference, which can take exponential time; match the allowed text without it`,
  );

/** Returns the code of a character. @throws PatternError for an octal code, which is meant as a backreference */
function getCode(node: AST.Character): number {
  if (/^\\[1-9]/.test(node.raw)) throw createBackreferenceError(node);
  return node.value;
}

/** A character set without the flag `v`, which patterns do not have. */
type SetNode = AST.ClassRangesCharacterClass | AST.AnyCharacterSet | MemberSetNode;
type MemberSetNode = AST.EscapeCharacterSet | AST.CharacterUnicodePropertyCharacterSet;

/** Returns the set of a class such as `[a-z]`, of `.`, or of an escape such as `\d`. @throws PatternError */
function toCharacterSet(node: SetNode): CharacterSet {
  if (node.type === 'CharacterSet') {
    return node.kind === 'any' ? anyButLineEnd : { isNegated: false, ranges: [], named: [toNamedSet(node)] };
  }
  const ranges: number[] = [];
  const named: NamedSet[] = [];
  for (const member of node.elements) {
    if (member.type === 'Character') ranges.push(getCode(member), getCode(member));
    else if (member.type === 'CharacterClassRange') ranges.push(getCode(member.min), getCode(member.max));
    else named.push(toNamedSet(member));
  }
  // Slices have no spare capacity.
  return { isNegated: node.negate, ranges: ranges.slice(), named: named.slice() };
}

/** Returns a function that retains nothing of the syntax tree. */
function toNamedSet(node: MemberSetNode): NamedSet {
  const { kind, negate, raw } = node;
  if (kind !== 'property') return negate ? complement(escapedSets[kind]) : escapedSets[kind];
  const name = raw.slice('\\p{'.length, -1);
  const property = properties.get(name.replace(/^(gc|General_Category)=|^(sc)=/, (_, gc) => (gc ? '' : 'Script=')));
  if (!property) throw createPropertyError(raw);
  return negate ? complement(property) : property;
}
