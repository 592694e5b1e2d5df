import { field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';
import { listFieldNames, listLeaves } from './body-fields.ts';

/**
 * A value that says which operation of an address is wanted, as `m=open` does in `/index.php?m=open&gate=north`. It stands
 * in the query, in a header or in a field of the body, to which the names of `trail` lead.
 */
type Action = { location: 'query' | 'header' | 'body'; name: string; trail: readonly string[]; value: string };

/** Operations with the same values of their actions are one. */
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

/** An operation that is told by its actions: they are constants, and its path has them. */
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

/** Last words of paths that stand for all of an API. */
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

/** A field of a body that has one value. */
type FixedField = { trail: readonly string[]; value: string | number };

/** A body in which fields have one value each. */
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

/** Values that are one word each, by where they stand. Numbers and texts are values of arguments. */
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

/** Names of parameters that hold the action, without separators; single letters only in a query. */
const ofAction =
  /^(?:query:(?:m|a)|\w+:(?:ws|api|soap|rpc|rest|x)?(?:do|op|act|cmd|fn|func|rpc|verb|action|method|function|operation|command|request)(?:name)?)$/;
/** Names of parameters that can tell operations apart, beside the action or without one. */
const mayBeOfAction =
  /^\w+:(?:r|c|api|call|category|controller|entity|event|intent|kind|mode|module|object|option|page|report|resource|route|section|service|task|type|view)(?:name|type)?$/;

/** `query wsFunction` → `query:wsfunction`; of a field inside others its own name counts. */
function plain(key: string): string {
  const space = key.indexOf(' ');
  const name = key.slice(Math.max(space, key.lastIndexOf('.'))).toLowerCase();
  return `${key.slice(0, space)}:${name.replaceAll(/[^a-z0-9]/g, '')}`;
}

/** Most places that are looked at, so that the work stays in proportion to the number of requests. */
const mostKeys = 5;

/** Where the actions of these operations stand; empty when they are all the same operation. */
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
  // Inside of objects the same names say what a thing is, so there each value must go with fields of its own.
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

/** Programs answer what their query says; other paths name a thing. */
const isProgram = /\.(?:ashx|asmx|aspx?|cfm|cgi|dll|do|jsp|php|pl)$/i;

/** Whether each value goes with inputs of its own: at a program, whether not all go with the same. */
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
