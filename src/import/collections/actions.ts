import { field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';
import { listFieldNames, listLeaves } from './body-fields.ts';

/**
 * Value that selects the operation at an address, like `m=open` in `/index.php?m=open&gate=north`. It is in the query,
 * in a header, or in the body field that the names in `trail` lead to.
 */
type Action = { location: 'query' | 'header' | 'body'; name: string; trail: readonly string[]; value: string };

/** Groups operations that have the same action values. Each group is one operation. */
export function splitByAction(all: readonly ApiOperation[]): { actions: Action[]; operations: ApiOperation[] }[] {
  if (all.length < 2) return [{ actions: [], operations: [...all] }];
  const found = all.map((operation) => ({ operation, words: wordsIn(operation) }));
  const keys = actionKeys(found);
  const groups = Map.groupBy(found, ({ words }) => JSON.stringify(keys.map((key) => words.get(key)?.value)));
  return [...groups.values()].map((group) => ({
    actions: keys.flatMap((key) => group[0]?.words.get(key) ?? []),
    operations: group.map(({ operation }) => operation),
  }));
}

/** Turns the actions of an operation into constants and adds them to its path. */
export function withActions(operation: ApiOperation, actions: readonly Action[]): ApiOperation {
  if (actions.length === 0) return operation;
  const inQuery = new Set(actions.flatMap(({ location, name }) => (location === 'query' ? [name] : [])));
  const pairs = (isQuery: boolean) =>
    actions
      .filter(({ location }) => (location === 'query') === isQuery)
      .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join('&');
  const route = [operation.route, pairs(true) && `?${pairs(true)}`].join('');
  const path = [route, pairs(false) && `#${pairs(false)}`].join('');
  const constants = actions.flatMap(({ location, trail, value }) => (location === 'body' ? [{ trail, value }] : []));
  return {
    ...operation,
    path,
    route,
    operationId: operation.operationId ?? wordsOfAction(operation, actions),
    inputs: operation.inputs.filter(({ location, name }) => location !== 'query' || !inQuery.has(name)),
    body: withFixedFields(operation.body, constants),
  };
}

/** Last path segments that stand for a whole API. */
const ofAll = /^(?:admin-ajax|ajax|api|endpoint|gateway|index|json|main|query|rest|rpc|service|v\d+)?$/i;

function wordsOfAction({ path }: ApiOperation, actions: readonly Action[]): string {
  const last =
    path
      .split('/')
      .at(-1)
      ?.replace(/\.\w+$/, '') ?? '';
  const values = actions.map(({ value }) => value);
  return [...values, ...(ofAll.test(last) || last.includes('{') ? [] : [last])].join(' ');
}

/** Body field with a fixed value. */
type FixedField = { trail: readonly string[]; value: string | number };

/** Returns a body in which the given fields have a fixed value. */
export function withFixedFields(body: ApiBody | undefined, constants: readonly FixedField[]): ApiBody | undefined {
  const [content] = body?.contents ?? [];
  if (!body || !content || !isFields(content.schema) || constants.length === 0) return body;
  const schema = constants.reduce<JsonFields>(
    (fixed, { trail, value }) => withFixed(fixed, trail, value),
    content.schema,
  );
  return { ...body, contents: [{ ...content, schema }] };
}

function withFixed(schema: JsonFields, [name, ...rest]: readonly string[], value: string | number): JsonFields {
  if (name === undefined) return { type: typeof value === 'number' ? 'integer' : 'string', enum: [value] };
  const inner = field(schema.properties, name);
  return {
    ...schema,
    properties: { ...(schema.properties as object), [name]: withFixed(isFields(inner) ? inner : {}, rest, value) },
    required: [...new Set([...listOf(schema.required), name])],
  };
}

type Found = { operation: ApiOperation; words: ReadonlyMap<string, Action> };

/** Returns single-word values by their location. Numbers and longer texts are argument values. */
function wordsIn(operation: ApiOperation): Map<string, Action> {
  const actions = [
    ...operation.inputs.flatMap(({ location, name, schema }) =>
      location === 'query' || location === 'header' ? actionOf(location, [name], schema) : [],
    ),
    ...listLeaves(operation).flatMap(({ trail, schema }) => actionOf('body', trail, schema)),
  ];
  return new Map(actions.map((action) => [`${action.location} ${action.name}`, action]));
}

function actionOf(location: Action['location'], trail: readonly string[], schema: unknown): Action[] {
  const value = listOf(field(schema, 'enum'))[0] ?? field(schema, 'example');
  const isWord = typeof value === 'string' && /^[A-Za-z_][\w.:/#-]{0,99}$/.test(value);
  return isWord ? [{ location, name: trail.join('.'), trail, value }] : [];
}

/** Names of parameters that hold the action, without separators. Single letters count only in a query. */
const ofAction =
  /^(?:query:(?:m|a)|\w+:(?:ws|api|soap|rpc|rest|x)?(?:do|op|act|cmd|fn|func|rpc|verb|action|method|function|operation|command|request)(?:name)?)$/;
/** Names of parameters that can distinguish operations, with or without an action. */
const mayBeOfAction =
  /^\w+:(?:r|c|api|call|category|controller|entity|event|intent|kind|mode|module|object|option|page|report|resource|route|section|service|task|type|view)(?:name|type)?$/;

/** Normalizes a key: `query wsFunction` → `query:wsfunction`. For a nested field, only its own name is used. */
function plain(key: string): string {
  const space = key.indexOf(' ');
  const name = key.slice(Math.max(space, key.lastIndexOf('.'))).toLowerCase();
  return `${key.slice(0, space)}:${name.replaceAll(/[^a-z0-9]/g, '')}`;
}

/** Maximum number of keys that are checked, so that the work stays proportional to the number of requests. */
const mostKeys = 5;

/** Returns the keys whose values distinguish the operations; empty if all of them are the same operation. */
function actionKeys(all: readonly Found[]): string[] {
  const values = new Map<string, string[]>();
  for (const [key, { value }] of all.flatMap(({ words }) => [...words])) {
    const others = values.get(key);
    if (others) others.push(value);
    else values.set(key, [value]);
  }
  const differing = [...values].flatMap(([key, found]) =>
    found.length < all.length || new Set(found).size > 1 ? [key] : [],
  );
  // Inside objects, such names describe the kind of an object, so each value must occur with distinct fields.
  const isInside = (key: string) => key.includes('.');
  const named = differing.filter((key) => ofAction.test(plain(key)) && !isInside(key)).slice(0, mostKeys);
  const possible = differing
    .filter((key) => mayBeOfAction.test(plain(key)) || (isInside(key) && ofAction.test(plain(key))))
    .filter((key) => values.get(key)?.length === all.length && (named.length === 0 || !isInside(key)))
    .slice(0, mostKeys);
  if (named.length > 0) return [...named, ...possible];
  const telling = possible.find((key) => isTelling(key, all));
  return telling === undefined ? [] : [telling];
}

/** Paths of programs. A program responds according to its query; other paths name a resource. */
const isProgram = /\.(?:ashx|asmx|aspx?|cfm|cgi|dll|do|jsp|php|pl)$/i;

/**
 * Returns true if each value occurs with distinct inputs. For a program, it is enough if not all values occur with the
 * same inputs.
 */
function isTelling(key: string, all: readonly Found[]): boolean {
  const byValue = Map.groupBy(all, ({ words }) => words.get(key)?.value);
  const sets = [...byValue.values()].map((group) => new Set(group.flatMap(({ operation }) => namesIn(operation))));
  const counts = new Map<string, number>();
  for (const name of sets.flatMap((set) => [...set])) counts.set(name, (counts.get(name) ?? 0) + 1);
  const withOwn = sets.filter((set) => [...set].some((name) => counts.get(name) === 1));
  const isOfProgram = isProgram.test(all[0]?.operation.path ?? '');
  return withOwn.length >= (isOfProgram ? 1 : 2);
}

function namesIn(operation: ApiOperation): string[] {
  const fields = [...listFieldNames(operation)].map((name) => `body ${name}`);
  return [...operation.inputs.map(({ location, name }: ApiInput) => `${location} ${name}`), ...fields];
}
