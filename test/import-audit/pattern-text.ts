/** Generates strings that match a regular expression of the kinds that API descriptions contain. */
import type { Random } from './random.ts';

/** Thrown for a pattern for which no string can be generated. */
export class UnsupportedPattern extends Error {}

/** Generates a string that may still violate the pattern, so the caller must check it. @throws UnsupportedPattern */
export function makePatternText(pattern: string, random: Random, minLength = 0): string {
  const parser = { pattern, at: 0 };
  const make = readAlternatives(parser, random, minLength);
  if (parser.at < pattern.length) throw new UnsupportedPattern(`unexpected ${pattern[parser.at]}`);
  return make();
}

type Parser = { pattern: string; at: number };
type Make = () => string;

function readAlternatives(parser: Parser, random: Random, minLength: number): Make {
  const alternatives = [readSequence(parser, random, minLength)];
  while (parser.pattern[parser.at] === '|') {
    parser.at++;
    alternatives.push(readSequence(parser, random, minLength));
  }
  return () => random.pick(alternatives)();
}

function readSequence(parser: Parser, random: Random, minLength: number): Make {
  const parts: Make[] = [];
  while (parser.at < parser.pattern.length && !'|)'.includes(parser.pattern[parser.at] as string)) {
    const atom = readAtom(parser, random, minLength);
    const { min, max } = readQuantifier(parser, minLength);
    parts.push(() => {
      const count = min + random.below(Math.max(1, Math.min(max, min + 2) - min + 1));
      return Array.from({ length: count }, atom).join('');
    });
  }
  return () => parts.map((part) => part()).join('');
}

function readQuantifier(parser: Parser, minLength: number): { min: number; max: number } {
  const rest = parser.pattern.slice(parser.at);
  const found = /^(\*|\+|\?|\{(\d+)(,(\d*))?\})\??/.exec(rest);
  if (!found) return { min: 1, max: 1 };
  parser.at += found[0].length;
  const [, symbol = '', low, range, high] = found;
  if (symbol === '*') return { min: minLength, max: minLength + 2 };
  if (symbol === '+') return { min: Math.max(1, minLength), max: Math.max(1, minLength) + 2 };
  if (symbol === '?') return { min: 0, max: 1 };
  const min = Number(low);
  if (!range) return { min, max: min };
  const max = high ? Number(high) : min + 2;
  return { min: Math.min(Math.max(min, minLength), max), max };
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz';
const classes: Record<string, string> = {
  d: '0123456789',
  w: `${alphabet}0123456789`,
  s: ' ',
  D: alphabet,
  W: '-',
  S: alphabet,
};

function readAtom(parser: Parser, random: Random, minLength: number): Make {
  const character = parser.pattern[parser.at++] as string;
  if (character === '^' || character === '$') return () => '';
  if (character === '.') return () => random.pick([...alphabet]);
  if (character === '(') return readGroup(parser, random, minLength);
  if (character === '[') return readClass(parser, random);
  if (character === '\\') {
    const set = readEscape(parser);
    return () => random.pick([...set]);
  }
  if ('*+?{'.includes(character)) throw new UnsupportedPattern(`nothing to repeat before ${character}`);
  return () => character;
}

function readGroup(parser: Parser, random: Random, minLength: number): Make {
  const rest = parser.pattern.slice(parser.at);
  const kind = /^\?(:|<[A-Za-z]\w*>)/.exec(rest);
  if (kind) parser.at += kind[0].length;
  else if (rest.startsWith('?')) throw new UnsupportedPattern('look-around');
  const make = readAlternatives(parser, random, minLength);
  if (parser.pattern[parser.at++] !== ')') throw new UnsupportedPattern('open group');
  return make;
}

function readEscape(parser: Parser): string {
  const character = parser.pattern[parser.at++] ?? '';
  if (character === 'b' || character === 'B') throw new UnsupportedPattern('word boundary');
  if (character === 'p' || character === 'P') {
    const end = parser.pattern.indexOf('}', parser.at);
    if (end < 0) throw new UnsupportedPattern('property');
    const name = parser.pattern.slice(parser.at + 1, end);
    parser.at = end + 1;
    if (character === 'P') return '-';
    return name.startsWith('N') ? '0123456789' : name === 'Lu' ? alphabet.toUpperCase() : alphabet;
  }
  if (character === 'u') {
    const code = /^[0-9a-fA-F]{4}/.exec(parser.pattern.slice(parser.at));
    if (!code) throw new UnsupportedPattern('code point');
    parser.at += 4;
    return String.fromCharCode(Number.parseInt(code[0], 16));
  }
  const controls: Record<string, string> = { n: '\n', r: '\r', t: '\t' };
  return classes[character] ?? controls[character] ?? character;
}

function readClass(parser: Parser, random: Random): Make {
  const isNegated = parser.pattern[parser.at] === '^';
  if (isNegated) parser.at++;
  const members = new Set<string>();
  while (parser.pattern[parser.at] !== ']') {
    if (parser.at >= parser.pattern.length) throw new UnsupportedPattern('open class');
    const character = parser.pattern[parser.at++] as string;
    const set = character === '\\' ? readEscape(parser) : character;
    const isRange = set.length === 1 && parser.pattern[parser.at] === '-' && parser.pattern[parser.at + 1] !== ']';
    if (!isRange) for (const member of set) members.add(member);
    else {
      parser.at++;
      const next = parser.pattern[parser.at++] as string;
      const end = next === '\\' ? readEscape(parser) : next;
      const last = Math.min(end.codePointAt(0) ?? 0, (set.codePointAt(0) ?? 0) + 200);
      for (let code = set.codePointAt(0) ?? 0; code <= last; code++) members.add(String.fromCodePoint(code));
    }
  }
  parser.at++;
  const commonCharacters = [...`${alphabet}${alphabet.toUpperCase()}0123456789-_. `];
  const allowed = isNegated ? commonCharacters.filter((member) => !members.has(member)) : [...members];
  if (allowed.length === 0) throw new UnsupportedPattern('empty class');
  const plain = allowed.filter((member) => /[A-Za-z0-9]/.test(member));
  return () => random.pick(plain.length > 0 ? plain : allowed);
}
