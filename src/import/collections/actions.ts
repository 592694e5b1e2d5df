import { entriesOf, field, isFields, listOf } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';

/**
 * A value that says which operation of an address is wanted, as `m=open` does in `/index.php?m=open&gate=north`. It stands
 * in the query, in a field of the body or in a header.
 */
type Action = { location: 'query' | 'header' | 'body'; name: string; value: string };

/** Operations with the same values of their actions are one. */
export function splitByAction(all: readonly ApiOperation[]): { actions: Action[]; operations: ApiOperation[] }[] {
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
  const path = [operation.path, pairs(true) && `?${pairs(true)}`, pairs(false) && `#${pairs(false)}`].join('');
  const constants = actions.flatMap(({ location, name, value }) => (location === 'body' ? [[name, value]] : []));
  return {
    ...operation,
    path,
    operationId: operation.operationId ?? wordsOfAction(operation, actions),
    inputs: operation.inputs.filter(({ location, name }) => location !== 'query' || !inQuery.has(name)),
    body: withFixedFields(operation.body, Object.fromEntries(constants) as { [name: string]: string }),
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

/** A body in which fields have one value each. */
export function withFixedFields(
  body: ApiBody | undefined,
  constants: Readonly<Record<string, string | number>>,
): ApiBody | undefined {
  const [content] = body?.contents ?? [];
  if (!body || !content || !isFields(content.schema) || Object.keys(constants).length === 0) return body;
  const { properties, required } = content.schema;
  const fixed = Object.entries(constants).map(([name, value]) => [
    name,
    { type: typeof value === 'number' ? 'integer' : 'string', enum: [value] },
  ]);
  const schema = {
    ...content.schema,
    properties: { ...(properties as object), ...Object.fromEntries(fixed) },
    required: [...new Set([...listOf(required), ...Object.keys(constants)])],
  };
  return { ...body, contents: [{ ...content, schema }] };
}

type Found = { operation: ApiOperation; words: ReadonlyMap<string, Action> };

/** Values that are one word each, by where they stand. Numbers and texts are values of arguments. */
function wordsIn({ inputs, body }: ApiOperation): Map<string, Action> {
  const fields = entriesOf(field(body?.contents[0]?.schema, 'properties'));
  const actions = [
    ...inputs.flatMap(({ location, name, schema }) =>
      location === 'query' || location === 'header' ? actionOf(location, name, schema) : [],
    ),
    ...fields.flatMap(([name, schema]) => actionOf('body', name, schema)),
  ];
  return new Map(actions.map((action) => [`${action.location} ${action.name}`, action]));
}

function actionOf(location: Action['location'], name: string, schema: unknown): Action[] {
  const value = listOf(field(schema, 'enum'))[0] ?? field(schema, 'example');
  const isWord = typeof value === 'string' && /^[A-Za-z_][\w.:/#-]{0,99}$/.test(value);
  return isWord ? [{ location, name, value }] : [];
}

/** Names of parameters that hold the action, without separators; single letters only in a query. */
const ofAction =
  /^(?:query:(?:m|a)|\w+:(?:ws|api|soap|rpc|rest|x)?(?:do|op|act|cmd|fn|func|rpc|verb|action|method|function|operation|command|request)(?:name)?)$/;
/** Names of parameters that can tell operations apart, beside the action or without one. */
const mayBeOfAction =
  /^\w+:(?:r|c|api|call|controller|entity|event|kind|mode|module|object|option|page|report|resource|route|section|service|task|type|view)(?:name|type)?$/;

/** `query wsFunction` → `query:wsfunction`. */
function plain(key: string): string {
  const space = key.indexOf(' ');
  const name = key.slice(space).toLowerCase();
  return `${key.slice(0, space)}:${name.replaceAll(/[^a-z0-9]/g, '')}`;
}

/** Most places that are looked at, so that the work stays in proportion to the number of requests. */
const mostKeys = 5;

/** Where the actions of these operations stand; empty when they are all the same operation. */
function actionKeys(all: readonly Found[]): string[] {
  if (all.length < 2) return [];
  const values = new Map<string, string[]>();
  for (const [key, { value }] of all.flatMap(({ words }) => [...words])) {
    const others = values.get(key);
    if (others) others.push(value);
    else values.set(key, [value]);
  }
  const differing = [...values].flatMap(([key, found]) =>
    found.length < all.length || new Set(found).size > 1 ? [key] : [],
  );
  const named = differing.filter((key) => ofAction.test(plain(key))).slice(0, mostKeys);
  const possible = differing
    .filter((key) => mayBeOfAction.test(plain(key)) && values.get(key)?.length === all.length)
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

function namesIn({ inputs, body }: ApiOperation): string[] {
  const fields = entriesOf(field(body?.contents[0]?.schema, 'properties')).map(([name]) => `body ${name}`);
  return [...inputs.map(({ location, name }: ApiInput) => `${location} ${name}`), ...fields];
}
