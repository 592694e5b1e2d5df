import { joinPath } from '@toolhost/errors/problems';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { isRawNumber } from '@toolhost/json/json';

/**
 * A difference between two configurations. A side without the field is undefined. The path is shortened, because names
 * may have any length and each may be part of thousands of paths.
 */
export type FieldChange = { path: string; before?: unknown; after?: unknown };

type Fields = { readonly [name: string]: unknown };
/** A field, by its name within the object that contains it; undefined for the whole configuration. */
type Location = { key: string; path: string; parent: Location } | undefined;
type LocatedChange = FieldChange & { location: Location };

/**
 * Returns the differences between two configurations, field by field. Tools are compared by name, so a new tool does
 * not change all tools after it. Paths have the form that problems use, with a tool's name in brackets:
 * `tools[get_item].url`.
 */
export async function diffConfigs(before: unknown, after: unknown): Promise<FieldChange[]> {
  return (await findDifferences(before, after)).map(({ location: _, ...change }) => change);
}

/**
 * Returns the paths of changes that would overwrite a concurrent change: the field differs both from `base` and from
 * the value that this change sets. Without a base, every change counts as a possible overwrite.
 */
export async function findOverwrittenPaths(base: unknown, current: unknown, updated: unknown): Promise<string[]> {
  const changes = await findDifferences(current, updated);
  if (base === undefined) return changes.map(({ path }) => path);
  const concurrentChanges = createChangeNode();
  const yieldCounter = createYieldCounter();
  for (const { location } of await findDifferences(base, current)) {
    if (yieldCounter.shouldYield()) await yieldToEventLoop();
    addChange(concurrentChanges, location);
  }
  const overwritten: string[] = [];
  for (const { location, path } of changes) {
    if (yieldCounter.shouldYield()) await yieldToEventLoop();
    if (overlapsChange(concurrentChanges, location)) overwritten.push(path);
  }
  return overwritten;
}

/** A field that was changed, or that contains changed fields. */
type ChangeNode = { inner: Map<string, ChangeNode>; isChanged: boolean };

function createChangeNode(): ChangeNode {
  return { inner: new Map(), isChanged: false };
}

function addChange(root: ChangeNode, location: Location): void {
  let node = root;
  for (const key of getKeys(location)) {
    const inner = node.inner.get(key) ?? createChangeNode();
    node.inner.set(key, inner);
    node = inner;
  }
  node.isChanged = true;
}

/** Returns true if the field, a field that contains it, or a field within it was changed. */
function overlapsChange(root: ChangeNode, location: Location): boolean {
  let node: ChangeNode | undefined = root;
  for (const key of getKeys(location)) {
    if (node.isChanged) return true;
    node = node.inner.get(key);
    if (!node) return false;
  }
  return node.isChanged || node.inner.size > 0;
}

/** Returns the names that lead from the root to a field. */
function getKeys(location: Location): string[] {
  const keys: string[] = [];
  for (let current = location; current !== undefined; current = current.parent) keys.push(current.key);
  return keys.reverse();
}

/** Number of fields that are compared before yielding to the event loop. */
const fieldsPerChunk = 1000;

function createYieldCounter(): { shouldYield: () => boolean } {
  let count = 0;
  return { shouldYield: () => ++count % fieldsPerChunk === 0 };
}

async function findDifferences(before: unknown, after: unknown): Promise<LocatedChange[]> {
  const changes: LocatedChange[] = [];
  const yieldCounter = createYieldCounter();
  for (const _ of compareConfigs(before, after, changes)) if (yieldCounter.shouldYield()) await yieldToEventLoop();
  return changes;
}

/** Comparison that pauses after each field, so that its caller can yield to the event loop. */
type Comparison = Generator<undefined, void>;

function* compareConfigs(before: unknown, after: unknown, changes: LocatedChange[]): Comparison {
  const [previous, updated] = [splitTools(before), splitTools(after)];
  if (!previous.tools || !updated.tools) {
    yield* compare(before, after, undefined, changes);
    return;
  }
  yield* compare(previous.otherFields, updated.otherFields, undefined, changes);
  yield* compareFields(previous.tools, updated.tools, getChildLocation(undefined, 'tools'), changes);
}

/**
 * Splits a configuration into its tools and everything else. `tools` maps names to tools, or is undefined unless every
 * tool has a unique name.
 */
function splitTools(config: unknown): { otherFields: Fields; tools: Fields | undefined } {
  const { tools, ...otherFields } = (config ?? {}) as { tools?: unknown };
  return { otherFields, tools: Array.isArray(tools) ? toFields(tools) : undefined };
}

function* compare(before: unknown, after: unknown, location: Location, changes: LocatedChange[]): Comparison {
  yield;
  if (before === after) return;
  const [previous, updated] = [toFields(before), toFields(after)];
  if (previous && updated) yield* compareFields(previous, updated, location, changes);
  else if (!(yield* isSameJson(before, after))) changes.push(createChange(location, before, after));
}

function* compareFields(previous: Fields, updated: Fields, location: Location, changes: LocatedChange[]): Comparison {
  const countBefore = changes.length;
  for (const key of mergeNames(previous, updated)) {
    yield* compare(getOwnValue(previous, key), getOwnValue(updated, key), getChildLocation(location, key), changes);
  }
  if (changes.length === countBefore && isReordered(previous, updated)) {
    changes.push(createChange(location, Object.keys(previous), Object.keys(updated)));
  }
}

/** Returns true if two values are the same JSON. */
function* isSameJson(before: unknown, after: unknown): Generator<undefined, boolean> {
  yield;
  if (before === after) return true;
  if (typeof before !== 'object' || typeof after !== 'object' || !before || !after) return false;
  if (Array.isArray(before) !== Array.isArray(after)) return false;
  const [previous, updated] = [before as Fields, after as Fields];
  const keys = Object.keys(previous);
  if (keys.length !== Object.keys(updated).length || isReordered(previous, updated)) return false;
  for (const key of keys) if (!(yield* isSameJson(previous[key], updated[key]))) return false;
  return true;
}

/** Returns the location of an object's field, or of a list entry whose name is in brackets. */
function getChildLocation(parent: Location, key: string): Location {
  const path = parent === undefined ? [key] : key.startsWith('[') ? [parent.path + key] : [parent.path, key];
  return { key, path: joinPath(path), parent };
}

/** Returns the names on both sides, removed ones last. */
function mergeNames(previous: Fields, updated: Fields): string[] {
  return [...Object.keys(updated), ...Object.keys(previous).filter((name) => !Object.hasOwn(updated, name))];
}

/** Returns true if fields are in a different order, which matters because agents see arguments in this order. */
function isReordered(previous: Fields, updated: Fields): boolean {
  const names = Object.keys(updated);
  return Object.keys(previous).some((name, index) => name !== names[index]);
}

function getOwnValue(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function createChange(location: Location, before: unknown, after: unknown): LocatedChange {
  const sides = { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
  return { location, path: location?.path ?? '', ...sides };
}

/** Returns the entries of an object, or the objects of a list by their unique names; undefined for any other value. */
function toFields(value: unknown): Fields | undefined {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return undefined;
  if (!Array.isArray(value)) return value as Fields;
  const entriesByName = new Map<string, unknown>();
  for (const item of value) {
    const name = getName(item);
    if (name !== undefined) entriesByName.set(`[${name}]`, item);
  }
  return entriesByName.size === value.length && value.length > 0 ? Object.fromEntries(entriesByName) : undefined;
}

function getName(item: unknown): string | undefined {
  const name = typeof item === 'object' && item !== null ? (item as Fields).name : undefined;
  return typeof name === 'string' ? name : undefined;
}
