import { ToolFailure } from '../errors.ts';
import { isRawNumber } from './json.ts';

/** A dot path: `.` or empty is everything, `a.0.b` goes through own properties and array indexes. */
export type DotPath = readonly string[];

export function parseDotPath(text: string): DotPath {
  const trimmed = text.trim().replace(/^\./, '');
  return trimmed === '' ? [] : trimmed.split('.');
}

const maxKeysShown = 20;

/**
 * The part of a JSON value that a path names.
 * @throws ToolFailure transform, naming the path and the keys that exist at the deepest level reached
 */
export function extract(value: unknown, path: DotPath): unknown {
  let current = value;
  for (const [depth, key] of path.entries()) {
    const next = step(current, key);
    if (next === absent) {
      const reached = depth === 0 ? 'the answer' : `"${path.slice(0, depth).join('.')}"`;
      throw new ToolFailure(
        'transform',
        `response_transform "${path.join('.')}" does not exist in the answer: ${reached} has ${keysOf(current)}`,
      );
    }
    current = next;
  }
  return current;
}

const absent = Symbol('absent');

function step(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return absent;
  if (Array.isArray(value))
    return /^(0|[1-9]\d*)$/.test(key) && Number(key) < value.length ? value[Number(key)] : absent;
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : absent;
}

function keysOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'no entries' : `the indexes 0 to ${value.length - 1}`;
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return 'no keys, it is a single value';
  const keys = Object.keys(value);
  if (keys.length === 0) return 'no keys';
  const more = keys.length > maxKeysShown ? ` and ${keys.length - maxKeysShown} more` : '';
  return `the keys ${keys
    .slice(0, maxKeysShown)
    .map((key) => JSON.stringify(key.slice(0, 100)))
    .join(', ')}${more}`;
}

/** Keeps only some paths of an object, or of each item of an array; anything else is returned as it is. */
export function keepFields(value: unknown, paths: readonly DotPath[]): unknown {
  if (Array.isArray(value)) return value.map((item) => keepFields(item, paths));
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return value;
  const kept: Kept = new Map();
  for (const path of paths.filter((wanted) => !isInsideAnother(wanted, paths))) keep(value, path, kept);
  return toObject(kept);
}

/** Whoever keeps `a` keeps all of `a.b`. */
function isInsideAnother(path: DotPath, paths: readonly DotPath[]): boolean {
  return paths.some((other) => other.length < path.length && other.every((key, i) => key === path[i]));
}

/** A Map, so that a key such as `__proto__` stays data. */
type Kept = Map<string, unknown>;

function keep(value: unknown, path: DotPath, into: Kept): void {
  const [key, ...rest] = path;
  if (key === undefined) return;
  const next = step(value, key);
  if (next === absent) return;
  if (rest.length === 0) {
    into.set(key, next);
    return;
  }
  if (Array.isArray(next)) {
    const before = into.get(key);
    into.set(
      key,
      next.map((item, i) => keepInto(item, rest, Array.isArray(before) ? before[i] : undefined)),
    );
    return;
  }
  const inner = into.get(key);
  const map: Kept = inner instanceof Map ? inner : new Map();
  keep(next, rest, map);
  into.set(key, map);
}

function keepInto(value: unknown, path: DotPath, before: unknown): unknown {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return value;
  const map: Kept = before instanceof Map ? before : new Map();
  keep(value, path, map);
  return map;
}

function toObject(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, toObject(inner)]));
  if (Array.isArray(value)) return value.map(toObject);
  return value;
}
