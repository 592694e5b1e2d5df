import { isRawNumber } from '@toolhost/json/json';
import { createPatternMatcher } from './pattern-match.ts';
import { countTextSteps, type StepBudget } from './step-budget.ts';
import type { CheckRun, Step } from './violations.ts';

/** Checks a value. `at` is its path, and `exact` the same value with its exact digits. @throws StepLimitExceeded */
export type Test = (value: unknown, run: CheckRun, at: Step | undefined, exact?: unknown) => boolean;

/** JSON type of a value. */
export type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object';

export function getKind(value: unknown): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value as Kind;
}

/** Creates the test of a keyword from its limit. */
export type CreateTest = (limit: never) => Test;

type Comparison = (value: never, limit: never, steps: StepBudget) => boolean;

/**
 * Creates a keyword entry whose test is a comparison. It applies to values of one kind, or to all if `kind` is
 * undefined.
 */
function createComparison(keyword: string, kind: Kind | undefined, compare: Comparison): [string, CreateTest] {
  const compareAny = compare as (value: unknown, limit: unknown, steps: StepBudget) => boolean;
  return [
    keyword,
    (limit: unknown) => (value, run, at) =>
      (kind !== undefined && getKind(value) !== kind) ||
      compareAny(value, limit, run.steps) ||
      run.addViolation(at, { keyword, limit, value }),
  ];
}

/**
 * Tests of the keywords that contain no schema, in the order in which their violations are reported. `format` is a hint
 * and is not checked.
 */
export const keywordTests: ReadonlyMap<string, CreateTest> = new Map([
  ['type', createTypeTest],
  ['const', createConstTest],
  ['enum', createEnumTest],
  createComparison(
    'minProperties',
    'object',
    (value: object, limit: number, steps) => listNames(value, steps).length >= limit,
  ),
  createComparison(
    'maxProperties',
    'object',
    (value: object, limit: number, steps) => listNames(value, steps).length <= limit,
  ),
  createComparison('maxItems', 'array', (value: unknown[], limit: number) => value.length <= limit),
  createComparison('minItems', 'array', (value: unknown[], limit: number) => value.length >= limit),
  createComparison('minimum', 'number', (value: number, limit: number) => value >= limit),
  createComparison('maximum', 'number', (value: number, limit: number) => value <= limit),
  createComparison('exclusiveMinimum', 'number', (value: number, limit: number) => value > limit),
  createComparison('exclusiveMaximum', 'number', (value: number, limit: number) => value < limit),
  createComparison('multipleOf', 'number', isMultipleOf),
  createComparison(
    'minLength',
    'string',
    (value: string, limit: number, steps) => countCharacters(value, limit, steps) >= limit,
  ),
  createComparison(
    'maxLength',
    'string',
    (value: string, limit: number, steps) => countCharacters(value, limit, steps) <= limit,
  ),
  ['pattern', createPatternTest],
] as [string, CreateTest][]);

/** Returns the names of an object. Each takes two steps, because listing costs twice as much as reading. */
export function listNames(value: object, steps: StepBudget): string[] {
  const names = Object.keys(value);
  steps.consume(1 + 2 * names.length);
  return names;
}

function createTypeTest(limit: unknown): Test {
  const types = new Set([limit].flat());
  const isIntegral = types.has('integer');
  return (value, run, at) =>
    types.has(getKind(value)) ||
    (isIntegral && Number.isInteger(value)) ||
    run.addViolation(at, { keyword: 'type', limit, value });
}

function createConstTest(limit: unknown): Test {
  return (value, run, at, exact = value) =>
    isEqual(exact, limit, run.steps) || run.addViolation(at, { keyword: 'const', limit, value: exact });
}

function createEnumTest(limit: readonly unknown[]): Test {
  const primitives = new Set(limit.filter((value) => typeof value !== 'object' || value === null));
  const structures = limit.filter((value) => typeof value === 'object' && value !== null);
  return (value, run, at, exact = value) => {
    if (typeof value === 'string') run.steps.consume(countTextSteps(value));
    if (primitives.has(exact)) return true;
    // A number with exact digits may equal a plain number: 1.0 is 1.
    const candidates = isRawNumber(exact) ? limit : structures;
    const mayEqualStructure = typeof value === 'object' || typeof value === 'number';
    if (mayEqualStructure && candidates.some((allowed) => isEqual(exact, allowed, run.steps))) return true;
    return run.addViolation(at, { keyword: 'enum', limit, value: exact });
  };
}

function createPatternTest(limit: unknown): Test {
  const matches = createPatternMatcher(String(limit));
  return (value, run, at) =>
    typeof value !== 'string' ||
    matches(value, run.steps) ||
    run.addViolation(at, { keyword: 'pattern', limit, value });
}

/** Returns true if two JSON values are equal (JSON Schema 2020-12, core, 4.2.2). */
function isEqual(a: unknown, b: unknown, steps: StepBudget): boolean {
  steps.consume(typeof b === 'string' ? 1 + countTextSteps(b) : 1);
  if (isRawNumber(a) || isRawNumber(b)) return isSameNumber(getDigits(a), getDigits(b));
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return a === b;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => isEqual(item, b[i], steps));
  }
  const [x, y] = [a as { [name: string]: unknown }, b as { [name: string]: unknown }];
  const names = listNames(x, steps);
  if (names.length !== listNames(y, steps).length) return false;
  return names.every((name) => Object.hasOwn(y, name) && isEqual(x[name], y[name], steps));
}

function getDigits(value: unknown): string | undefined {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'number' ? String(value) : undefined;
}

/** Compares integers by all of their digits, because a double has only about 16 of them. 1.0 equals 1. */
function isSameNumber(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || Number(a) !== Number(b)) return false;
  const areIntegers = [a, b].every((text) => /^-?\d+$/.test(text));
  return !areIntegers || Number.isSafeInteger(Number(a)) || a === b;
}

/**
 * Returns the number of characters of a text. Counts only if the result depends on it: a text has at most as many
 * characters as code units, and at least half as many.
 */
function countCharacters(text: string, limit: number, steps: StepBudget): number {
  const { length } = text;
  if (length < limit || length >= 2 * limit + 2) return length;
  steps.consume(countTextSteps(text) * 4);
  let pairs = 0;
  for (let i = 1; i < length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return length - pairs;
}

/** Compares decimals exactly: 0.3 is a multiple of 0.1, although dividing the doubles has a remainder. */
function isMultipleOf(value: number, divisor: number, steps: StepBudget): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  steps.consume(100);
  const [a, exponentA] = toDecimal(value);
  const [b, exponentB] = toDecimal(divisor);
  const difference = exponentA - exponentB;
  return difference >= 0 ? (a * 10n ** BigInt(difference)) % b === 0n : a % (b * 10n ** BigInt(-difference)) === 0n;
}

/** Splits a number into an integer and a power of ten. */
function toDecimal(value: number): [coefficient: bigint, exponent: number] {
  const [coefficient = '', exponent = '0'] = Math.abs(value).toString().split('e');
  const [integerPart, fraction = ''] = coefficient.split('.');
  return [BigInt(`${integerPart}${fraction}`), Number(exponent) - fraction.length];
}
