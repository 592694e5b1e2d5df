import { isRawNumber } from '../json/json.ts';
import { type Steps, stepsOfText } from '../work/steps.ts';
import type { CheckRun, Step } from './faults.ts';
import { patternTest } from './pattern-match.ts';

/** Checks a value; `at` is its path, and `given` the same value with its digits. @throws TooMuchWork */
export type Test = (value: unknown, run: CheckRun, at: Step | undefined, given?: unknown) => boolean;

/** A test for values of one type only. */
export type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object';

export function kindOf(value: unknown): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value as Kind;
}

/** Makes the test of a keyword from its value. */
export type MakeTest = (limit: never) => Test;

type Holds = (value: never, limit: never, steps: Steps) => boolean;

/** A keyword that is a comparison: of values of this kind, or of all when undefined. */
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

/** The keywords that hold no schema, in the order in which their faults are reported. */
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
  ['format', formatOf],
] as [string, MakeTest][]);

/** The names of an object. Each takes two steps, because listing takes twice as long as reading. */
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
    // A number with its digits may be the same as an ordinary one: 1.0 is 1.
    const others = isRawNumber(given) ? limit : whole;
    const isWhole = typeof value === 'object' || typeof value === 'number';
    if (isWhole && others.some((allowed) => isEqual(given, allowed, run.steps))) return true;
    return run.fault(at, { keyword: 'enum', limit, found: given });
  };
}

function formatOf(limit: unknown): Test {
  const fits = formatTest(limit);
  return (value, run, at) => {
    if (!fits || typeof value !== 'string') return true;
    run.steps.take(100);
    return fits(value) || run.fault(at, { keyword: 'format', limit, found: value });
  };
}

function patternOf(limit: unknown): Test {
  const fits = patternTest(String(limit));
  return (value, run, at) =>
    typeof value !== 'string' || fits(value, run.steps) || run.fault(at, { keyword: 'pattern', limit, found: value });
}

/** Whether two JSON values are equal (JSON Schema 2020-12, core, 4.2.2). */
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

/** Whole numbers are the same with the same digits, of which a double has about 16; 1.0 is 1. */
function isSameNumber(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined || Number(one) !== Number(other)) return false;
  const areWhole = [one, other].every((text) => /^-?\d+$/.test(text));
  return !areWhole || Number.isSafeInteger(Number(one)) || one === other;
}

/**
 * Characters of a text, counted only where that decides anything: there are at most as many as code units, and at least
 * half as many.
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

/** Exact for decimals: 0.3 is a multiple of 0.1, which dividing doubles would deny. */
function isMultipleOf(value: number, divisor: number, steps: Steps): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  steps.take(100);
  const [a, exponentA] = decimal(value);
  const [b, exponentB] = decimal(divisor);
  const difference = exponentA - exponentB;
  return difference >= 0 ? (a * 10n ** BigInt(difference)) % b === 0n : a % (b * 10n ** BigInt(-difference)) === 0n;
}

/** A number as an integer and a power of ten. */
function decimal(value: number): [coefficient: bigint, exponent: number] {
  const [coefficient = '', exponent = '0'] = Math.abs(value).toString().split('e');
  const [whole, fraction = ''] = coefficient.split('.');
  return [BigInt(`${whole}${fraction}`), Number(exponent) - fraction.length];
}

/** The formats that are checked; any other `format` is a hint to the model only. */

const longestFormatted = 400;

const date = /^(\d{4})-(\d\d)-(\d\d)$/;
const time = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;
const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`);
const localPart =
  /^(?:"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"|[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*)$/i;
const hostName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = (date.exec(text) ?? []).slice(1).map(Number);
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && isLeapYear ? 29 : (monthDays[month - 1] ?? 0);
  return day >= 1 && day <= days;
}

/** RFC 3339, 5.6; a leap second only where UTC has one. */
function isTime(text: string): boolean {
  const found = time.exec(text);
  if (!found) return false;
  const [hour = 0, minute = 0, second = 0] = found.slice(1, 4).map(Number);
  const [offsetHour, offsetMinute] = [Number(found[5] ?? 0), Number(found[6] ?? 0)];
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return false;
  if (second < 60) return true;
  const offset = (found[4] === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute);
  const day = 24 * 60;
  return (hour * 60 + minute - offset + day) % day === day - 1;
}

function isDateTime(text: string): boolean {
  const parts = text.split(/[t\s]/i);
  return parts.length === 2 && isDate(parts[0] as string) && isTime(parts[1] as string);
}

/** RFC 4291, 2.2: eight groups, one run of zeros left out, the last two perhaps as IPv4. */
function isIpv6(text: string): boolean {
  const [before = '', after, ...more] = text.split('::');
  if (more.length > 0) return false;
  const groupsOf = (half: string) => (half === '' ? [] : half.split(':'));
  const groups = [...groupsOf(before), ...groupsOf(after ?? '')];
  const last = groups.at(-1) ?? '';
  const endsAsIpv4 = last.includes('.') && !(after === '' && groups.length > 0);
  if (endsAsIpv4 && !ipv4.test(last)) return false;
  const size = groups.length + (endsAsIpv4 ? 1 : 0);
  const isSize = after === undefined ? size === 8 : size <= 7;
  return (
    isSize && groups.every((group, i) => /^[0-9a-f]{1,4}$/i.test(group) || (endsAsIpv4 && i === groups.length - 1))
  );
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [name, host] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || name.length > 64 || host.length > 253 || !localPart.test(name)) return false;
  const literal = /^\[(ipv6:)?(.*)\]$/i.exec(host);
  if (literal) return literal[1] ? isIpv6(literal[2] as string) : ipv4.test(literal[2] as string);
  return hostName.test(host);
}

const tests = new Map<string, (text: string) => boolean>([
  ['date', isDate],
  ['time', isTime],
  ['date-time', isDateTime],
  ['uuid', (text) => uuid.test(text)],
  ['email', isEmail],
  ['ipv4', (text) => ipv4.test(text)],
  ['ipv6', isIpv6],
]);

/** The test of a format, or undefined for one that is not checked. Takes next to no time for a long text. */
export function formatTest(format: unknown): ((text: string) => boolean) | undefined {
  const test = tests.get(String(format));
  return test && ((text) => text.length <= longestFormatted && test(text));
}
