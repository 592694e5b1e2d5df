import { nextTurn } from '../work/next-turn.ts';

/** A difference between two configurations. A side on which the field does not exist is undefined. */
export type FieldChange = { path: string; before?: unknown; after?: unknown };

type Fields = { readonly [name: string]: unknown };
/** The path of a field and the object that has it; undefined is the whole configuration. */
type Location = { path: string; within: Location } | undefined;
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
  const elsewhere = (await differences(base, current)).map(({ location }) => outward(location));
  await nextTurn();
  const changed = new Set(elsewhere.map(([path]) => path));
  const around = new Set(elsewhere.flat());
  await nextTurn();
  return changes
    .filter(({ location, path }) => around.has(path) || outward(location).some((outer) => changed.has(outer)))
    .map(({ path }) => path);
}

/** The path of a field and of every object around it. */
function outward(location: Location): string[] {
  const paths: string[] = [];
  for (let one = location; one !== undefined; one = one.within) paths.push(one.path);
  return [...paths, ''];
}

/** Number of tools that are compared in one turn of the event loop. */
const toolsAtOnce = 50;

async function differences(before: unknown, after: unknown): Promise<Found[]> {
  const found: Found[] = [];
  const [old, next] = [toolsOf(before), toolsOf(after)];
  if (!old.tools || !next.tools) {
    compare(before, after, undefined, found);
    return found;
  }
  compare(old.others, next.others, undefined, found);
  const within = { path: 'tools', within: undefined };
  const count = found.length;
  for (const [index, key] of allNames(old.tools, next.tools).entries()) {
    if (index % toolsAtOnce === toolsAtOnce - 1) await nextTurn();
    compare(valueIn(old.tools, key), valueIn(next.tools, key), { path: `tools${key}`, within }, found);
  }
  if (found.length === count && isMoved(old.tools, next.tools)) {
    found.push(changeAt(within, Object.keys(old.tools), Object.keys(next.tools)));
  }
  return found;
}

/** A configuration without its tools, and the tools by name where every one has a name of its own. */
function toolsOf(config: unknown): { others: Fields; tools: Fields | undefined } {
  const { tools, ...others } = (config ?? {}) as { tools?: unknown };
  return { others, tools: Array.isArray(tools) ? fieldsOf(tools) : undefined };
}

function compare(before: unknown, after: unknown, location: Location, found: Found[]): void {
  if (before === after) return;
  const [old, next] = [fieldsOf(before), fieldsOf(after)];
  if (!old || !next) {
    if (JSON.stringify(before) !== JSON.stringify(after)) found.push(changeAt(location, before, after));
    return;
  }
  const count = found.length;
  for (const key of allNames(old, next)) {
    const path = location === undefined ? key : key.startsWith('[') ? location.path + key : `${location.path}.${key}`;
    compare(valueIn(old, key), valueIn(next, key), { path, within: location }, found);
  }
  if (found.length === count && isMoved(old, next)) {
    found.push(changeAt(location, Object.keys(old), Object.keys(next)));
  }
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
  if (typeof value !== 'object' || value === null) return undefined;
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
