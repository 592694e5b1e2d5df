import { isRawNumber } from './json/json.ts';
import { dotted } from './problems.ts';
import { nextTurn } from './work/next-turn.ts';

/**
 * A difference between two configurations. A side without the field is undefined. The path is shortened, because a
 * configuration may have names of any length and thousands of fields below each.
 */
export type FieldChange = { path: string; before?: unknown; after?: unknown };

type Fields = { readonly [name: string]: unknown };
/** A field, by its name within the object that contains it. Undefined is the whole configuration. */
type Location = { key: string; path: string; within: Location } | undefined;
type Found = FieldChange & { location: Location };

/**
 * Returns the differences between two configurations, field by field. Tools are compared by name, so a new tool does
 * not change all tools after it. Paths have the form that problems use, with a tool's name in brackets:
 * `tools[get_item].url`.
 */
export async function changesBetween(before: unknown, after: unknown): Promise<FieldChange[]> {
  return (await differences(before, after)).map(({ location: _, ...change }) => change);
}

/**
 * Returns the paths of changes that would overwrite a concurrent change: the field differs both from `base` and from
 * the value that this change sets. Without a base, every change counts as a possible overwrite.
 */
export async function undonePaths(base: unknown, current: unknown, next: unknown): Promise<string[]> {
  const changes = await differences(current, next);
  if (base === undefined) return changes.map(({ path }) => path);
  const elsewhere = newPlace();
  const turns = countTurns();
  for (const { location } of await differences(base, current)) {
    if (turns.isDue()) await nextTurn();
    addChange(elsewhere, location);
  }
  const undone: string[] = [];
  for (const { location, path } of changes) {
    if (turns.isDue()) await nextTurn();
    if (touches(elsewhere, location)) undone.push(path);
  }
  return undone;
}

/** A field that was changed, or that contains changed fields. */
type Place = { inner: Map<string, Place>; isChanged: boolean };

function newPlace(): Place {
  return { inner: new Map(), isChanged: false };
}

function addChange(root: Place, location: Location): void {
  let place = root;
  for (const key of keysOf(location)) {
    const inner = place.inner.get(key) ?? newPlace();
    place.inner.set(key, inner);
    place = inner;
  }
  place.isChanged = true;
}

/** Returns true if the field, a field that contains it, or a field within it was changed. */
function touches(root: Place, location: Location): boolean {
  let place: Place | undefined = root;
  for (const key of keysOf(location)) {
    if (place.isChanged) return true;
    place = place.inner.get(key);
    if (!place) return false;
  }
  return place.isChanged || place.inner.size > 0;
}

/** Returns the names that lead from the root to a field. */
function keysOf(location: Location): string[] {
  const keys: string[] = [];
  for (let one = location; one !== undefined; one = one.within) keys.push(one.key);
  return keys.reverse();
}

/** Number of fields that are compared before yielding to the event loop. */
const fieldsAtOnce = 1000;

function countTurns(): { isDue: () => boolean } {
  let count = 0;
  return { isDue: () => ++count % fieldsAtOnce === 0 };
}

async function differences(before: unknown, after: unknown): Promise<Found[]> {
  const found: Found[] = [];
  const turns = countTurns();
  for (const _ of compareConfigs(before, after, found)) if (turns.isDue()) await nextTurn();
  return found;
}

/** A comparison that can pause after each field. */
type Comparison = Generator<undefined, void>;

function* compareConfigs(before: unknown, after: unknown, found: Found[]): Comparison {
  const [old, next] = [toolsOf(before), toolsOf(after)];
  if (!old.tools || !next.tools) {
    yield* compare(before, after, undefined, found);
    return;
  }
  yield* compare(old.others, next.others, undefined, found);
  yield* compareFields(old.tools, next.tools, below(undefined, 'tools'), found);
}

/**
 * Splits a configuration into its tools and everything else. `tools` maps names to tools, or is undefined unless every
 * tool has a unique name.
 */
function toolsOf(config: unknown): { others: Fields; tools: Fields | undefined } {
  const { tools, ...others } = (config ?? {}) as { tools?: unknown };
  return { others, tools: Array.isArray(tools) ? fieldsOf(tools) : undefined };
}

function* compare(before: unknown, after: unknown, location: Location, found: Found[]): Comparison {
  yield;
  if (before === after) return;
  const [old, next] = [fieldsOf(before), fieldsOf(after)];
  if (old && next) yield* compareFields(old, next, location, found);
  else if (!(yield* isSame(before, after))) found.push(changeAt(location, before, after));
}

function* compareFields(old: Fields, next: Fields, location: Location, found: Found[]): Comparison {
  const count = found.length;
  for (const key of allNames(old, next)) {
    yield* compare(valueIn(old, key), valueIn(next, key), below(location, key), found);
  }
  if (found.length === count && isMoved(old, next)) {
    found.push(changeAt(location, Object.keys(old), Object.keys(next)));
  }
}

/** Returns true if two values are the same JSON. */
function* isSame(before: unknown, after: unknown): Generator<undefined, boolean> {
  yield;
  if (before === after) return true;
  if (typeof before !== 'object' || typeof after !== 'object' || !before || !after) return false;
  if (Array.isArray(before) !== Array.isArray(after)) return false;
  const [old, next] = [before as Fields, after as Fields];
  const keys = Object.keys(old);
  if (keys.length !== Object.keys(next).length || isMoved(old, next)) return false;
  for (const key of keys) if (!(yield* isSame(old[key], next[key]))) return false;
  return true;
}

/** Returns the location of an object's field, or of a list entry whose name is in brackets. */
function below(within: Location, key: string): Location {
  const path = within === undefined ? [key] : key.startsWith('[') ? [within.path + key] : [within.path, key];
  return { key, path: dotted(path), within };
}

/** Returns the names on both sides, removed ones last. */
function allNames(old: Fields, next: Fields): string[] {
  return [...Object.keys(next), ...Object.keys(old).filter((name) => !Object.hasOwn(next, name))];
}

/** Returns true if the same fields are in a different order. Order matters: agents see a tool's arguments in it. */
function isMoved(old: Fields, next: Fields): boolean {
  const names = Object.keys(next);
  return Object.keys(old).some((name, index) => name !== names[index]);
}

function valueIn(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function changeAt(location: Location, before: unknown, after: unknown): Found {
  const sides = { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
  return { location, path: location?.path ?? '', ...sides };
}

/** Returns the entries of an object, or of a list of named objects by name. Undefined for any other value. */
function fieldsOf(value: unknown): Fields | undefined {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return undefined;
  if (!Array.isArray(value)) return value as Fields;
  const named = new Map<string, unknown>();
  for (const item of value) {
    const name = nameOf(item);
    if (name !== undefined) named.set(`[${name}]`, item);
  }
  return named.size === value.length && value.length > 0 ? Object.fromEntries(named) : undefined;
}

function nameOf(item: unknown): string | undefined {
  const name = typeof item === 'object' && item !== null ? (item as Fields).name : undefined;
  return typeof name === 'string' ? name : undefined;
}
