import { isRawNumber } from '../json/json.ts';
import { type Steps, stepsOfText } from '../work/steps.ts';
import type { CheckRun, Step } from './faults.ts';
import { patternTest } from './pattern-match.ts';

/** Checks a value. `at` is its path, and `given` the same value with its exact digits. @throws TooMuchWork */
export type Test = (value: unknown, run: CheckRun, at: Step | undefined, given?: unknown) => boolean;

/** JSON type of a value. */
export type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object';

export function kindOf(value: unknown): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value as Kind;
}

/** Creates the test of a keyword from its limit. */
export type MakeTest = (limit: never) => Test;

type Holds = (value: never, limit: never, steps: Steps) => boolean;

/**
 * Creates a keyword entry whose test is a comparison. It applies to values of one kind, or to all if `kind` is
 * undefined.
 */
function comparison(keyword: string, kind: Kind | undefined, holds: Holds): [string, MakeTest] {
  const holdsFor = holds as (value: unknown, limit: unknown, steps: Steps) => boolean;
  return [
    keyword,
    (limit: unknown) => (value, run, at) =>
      (kind !== undefined && kindOf(value) !== kind) ||
      holdsFor(value, limit, run.steps) ||
      run.fault(at, { keyword, limit, found: value }),
  ];
}

/**
 * Tests of the keywords that contain no schema, in the order in which their violations are reported. `format` is a hint
 * and is not checked.
 */
export const keywordTests: ReadonlyMap<string, MakeTest> = new Map([
  ['type', typeTest],
  ['const', constTest],
  ['enum', enumTest],
  comparison('minProperties', 'object', (value: object, limit: number, steps) => namesOf(value, steps).length >= limit),
  comparison('maxProperties', 'object', (value: object, limit: number, steps) => namesOf(value, steps).length <= limit),
  comparison('maxItems', 'array', (value: unknown[], limit: number) => value.length <= limit),
  comparison('minItems', 'array', (value: unknown[], limit: number) => value.length >= limit),
  comparison('minimum', 'number', (value: number, limit: number) => value >= limit),
  comparison('maximum', 'number', (value: number, limit: number) => value <= limit),
  comparison('exclusiveMinimum', 'number', (value: number, limit: number) => value > limit),
  comparison('exclusiveMaximum', 'number', (value: number, limit: number) => value < limit),
  comparison('multipleOf', 'number', isMultipleOf),
  comparison('minLength', 'string', (value: string, limit: number, steps) => lengthOf(value, limit, steps) >= limit),
  comparison('maxLength', 'string', (value: string, limit: number, steps) => lengthOf(value, limit, steps) <= limit),
  ['pattern', patternOf],
] as [string, MakeTest][]);

/** Returns the names of an object. Each takes two steps, because listing costs twice as much as reading. */
export function namesOf(value: object, steps: Steps): string[] {
  const names = Object.keys(value);
  steps.take(1 + 2 * names.length);
  return names;
}

function typeTest(limit: unknown): Test {
  const types = new Set([limit].flat());
  const isIntegral = types.has('integer');
  return (value, run, at) =>
    types.has(kindOf(value)) ||
    (isIntegral && Number.isInteger(value)) ||
    run.fault(at, { keyword: 'type', limit, found: value });
}

function constTest(limit: unknown): Test {
  return (value, run, at, given = value) =>
    isEqual(given, limit, run.steps) || run.fault(at, { keyword: 'const', limit, found: given });
}

function enumTest(limit: readonly unknown[]): Test {
  const single = new Set(limit.filter((value) => typeof value !== 'object' || value === null));
  const whole = limit.filter((value) => typeof value === 'object' && value !== null);
  return (value, run, at, given = value) => {
    if (typeof value === 'string') run.steps.take(stepsOfText(value));
    if (single.has(given)) return true;
    // A number with exact digits may equal a plain number: 1.0 is 1.
    const others = isRawNumber(given) ? limit : whole;
    const isWhole = typeof value === 'object' || typeof value === 'number';
    if (isWhole && others.some((allowed) => isEqual(given, allowed, run.steps))) return true;
    return run.fault(at, { keyword: 'enum', limit, found: given });
  };
}

function patternOf(limit: unknown): Test {
  const fits = patternTest(String(limit));
  return (value, run, at) =>
    typeof value !== 'string' || fits(value, run.steps) || run.fault(at, { keyword: 'pattern', limit, found: value });
}

/** Returns true if two JSON values are equal (JSON Schema 2020-12, core, 4.2.2). */
function isEqual(a: unknown, b: unknown, steps: Steps): boolean {
  steps.take(typeof b === 'string' ? 1 + stepsOfText(b) : 1);
  if (isRawNumber(a) || isRawNumber(b)) return isSameNumber(digitsOf(a), digitsOf(b));
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return a === b;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => isEqual(item, b[i], steps));
  }
  const [x, y] = [a as { [name: string]: unknown }, b as { [name: string]: unknown }];
  const names = namesOf(x, steps);
  if (names.length !== namesOf(y, steps).length) return false;
  return names.every((name) => Object.hasOwn(y, name) && isEqual(x[name], y[name], steps));
}

function digitsOf(value: unknown): string | undefined {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'number' ? String(value) : undefined;
}

/** Compares integers by all of their digits, because a double has only about 16 of them. 1.0 equals 1. */
function isSameNumber(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined || Number(one) !== Number(other)) return false;
  const areWhole = [one, other].every((text) => /^-?\d+$/.test(text));
  return !areWhole || Number.isSafeInteger(Number(one)) || one === other;
}

/**
 * Returns the number of characters of a text. Counts only if the result depends on it: a text has at most as many
 * characters as code units, and at least half as many.
 */
function lengthOf(text: string, limit: number, steps: Steps): number {
  const { length } = text;
  if (length < limit || length >= 2 * limit + 2) return length;
  steps.take(stepsOfText(text) * 4);
  let pairs = 0;
  for (let i = 1; i < length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return length - pairs;
}

/** Exact for decimals: 0.3 is a multiple of 0.1, although dividing the doubles has a remainder. */
function isMultipleOf(value: number, divisor: number, steps: Steps): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  steps.take(100);
  const [a, exponentA] = decimal(value);
  const [b, exponentB] = decimal(divisor);
  const difference = exponentA - exponentB;
  return difference >= 0 ? (a * 10n ** BigInt(difference)) % b === 0n : a % (b * 10n ** BigInt(-difference)) === 0n;
}

/** Splits a number into an integer and a power of ten. */
function decimal(value: number): [coefficient: bigint, exponent: number] {
  const [coefficient = '', exponent = '0'] = Math.abs(value).toString().split('e');
  const [whole, fraction = ''] = coefficient.split('.');
  return [BigInt(`${whole}${fraction}`), Number(exponent) - fraction.length];
}
