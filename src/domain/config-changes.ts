import { isRawNumber } from './json/json.ts';
import { dotted } from './problems.ts';
import { nextTurn } from './work/next-turn.ts';

/**
 * A difference between two configurations. A side on which the field does not exist is undefined. The path is shortened,
 * because a configuration may have names of any length, and thousands of fields below each.
 */
export type FieldChange = { path: string; before?: unknown; after?: unknown };

type Fields = { readonly [name: string]: unknown };
/** A field by its name in the object around it; undefined is the whole configuration. */
type Location = { key: string; path: string; within: Location } | undefined;
type Found = FieldChange & { location: Location };

/**
 * Differences between two configurations, field by field. Tools are compared by name, so that a new tool does not change
 * all tools after it. A path is that of a problem, with the name of a tool in brackets: `tools[get_item].url`.
 */
export async function changesBetween(before: unknown, after: unknown): Promise<FieldChange[]> {
  return (await differences(before, after)).map(({ location: _, ...change }) => change);
}

/**
 * Paths of changes that would undo what was changed elsewhere: the field is neither as it was at `base` nor as the
 * change leaves it. Without a base every change may undo one.
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

/** A field that was changed, or that has changed fields below it. */
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

/** Whether a field, one around it or one below it was changed. */
function touches(root: Place, location: Location): boolean {
  let place: Place | undefined = root;
  for (const key of keysOf(location)) {
    if (place.isChanged) return true;
    place = place.inner.get(key);
    if (!place) return false;
  }
  return place.isChanged || place.inner.size > 0;
}

/** The names from the outside to a field. */
function keysOf(location: Location): string[] {
  const keys: string[] = [];
  for (let one = location; one !== undefined; one = one.within) keys.push(one.key);
  return keys.reverse();
}

/** How many fields are compared in one turn of the event loop. */
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

/** A comparison that can be continued in another turn after each field. */
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

/** A configuration without its tools, and the tools by name where every one has a name of its own. */
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

/** Whether two values are the same JSON. */
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

/** The location of a field of an object, or of an entry of a list whose name is in brackets. */
function below(within: Location, key: string): Location {
  const path = within === undefined ? [key] : key.startsWith('[') ? [within.path + key] : [within.path, key];
  return { key, path: dotted(path), within };
}

/** The names of both, those that are gone last. */
function allNames(old: Fields, next: Fields): string[] {
  return [...Object.keys(next), ...Object.keys(old).filter((name) => !Object.hasOwn(next, name))];
}

/** Whether the same fields are in another order, which counts: agents see the arguments of a tool in it. */
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

/** The entries of an object, or of a list of named objects by their names; undefined for any other value. */
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
