import { getField, isFields, type JsonFields, toList } from '../document/lenient.ts';
import type { ApiBody, ApiInput, ApiOperation } from '../model.ts';
import { listFieldNames, listLeaves } from './body-fields.ts';

/**
 * Value that selects the operation at an address, like `m=open` in `/index.php?m=open&gate=north`. For a body field,
 * `trail` has the names of the enclosing fields and its own.
 */
type Action = { location: 'query' | 'header' | 'body'; name: string; trail: readonly string[]; value: string };

/** Groups operations that have the same action values. Each group is one operation. */
export function splitByAction(
  operations: readonly ApiOperation[],
): { actions: Action[]; operations: ApiOperation[] }[] {
  if (operations.length < 2) return [{ actions: [], operations: [...operations] }];
  const analyzed = operations.map((operation) => ({ operation, actionsByKey: findActions(operation) }));
  const keys = findActionKeys(analyzed);
  const groups = Map.groupBy(analyzed, ({ actionsByKey }) =>
    JSON.stringify(keys.map((key) => actionsByKey.get(key)?.value)),
  );
  return [...groups.values()].map((group) => ({
    actions: keys.flatMap((key) => group[0]?.actionsByKey.get(key) ?? []),
    operations: group.map(({ operation }) => operation),
  }));
}

/** Makes the actions of an operation constant, and adds them to its path as a query or, if sent elsewhere, a fragment. */
export function addActions(operation: ApiOperation, actions: readonly Action[]): ApiOperation {
  if (actions.length === 0) return operation;
  const queryNames = new Set(actions.flatMap(({ location, name }) => (location === 'query' ? [name] : [])));
  const formatPairs = (isQuery: boolean) =>
    actions
      .filter(({ location }) => (location === 'query') === isQuery)
      .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .join('&');
  const route = [operation.route, formatPairs(true) && `?${formatPairs(true)}`].join('');
  const path = [route, formatPairs(false) && `#${formatPairs(false)}`].join('');
  const fixedValues = actions.flatMap(({ location, trail, value }) => (location === 'body' ? [{ trail, value }] : []));
  return {
    ...operation,
    path,
    route,
    operationId: operation.operationId ?? createNameFromActions(operation, actions),
    inputs: operation.inputs.filter(({ location, name }) => location !== 'query' || !queryNames.has(name)),
    body: fixFields(operation.body, fixedValues),
  };
}

/** Matches last path segments that say nothing about the operation. */
const genericSegment = /^(?:admin-ajax|ajax|api|endpoint|gateway|index|json|main|query|rest|rpc|service|v\d+)?$/i;

function createNameFromActions({ path }: ApiOperation, actions: readonly Action[]): string {
  const lastSegment =
    path
      .split('/')
      .at(-1)
      ?.replace(/\.\w+$/, '') ?? '';
  const values = actions.map(({ value }) => value);
  return [...values, ...(genericSegment.test(lastSegment) || lastSegment.includes('{') ? [] : [lastSegment])].join(' ');
}

/** Body field with a fixed value. */
type FixedField = { trail: readonly string[]; value: string | number };

/** Returns a body in which the fields of `constants` have a fixed value. */
export function fixFields(body: ApiBody | undefined, constants: readonly FixedField[]): ApiBody | undefined {
  const [content] = body?.contents ?? [];
  if (!body || !content || !isFields(content.schema) || constants.length === 0) return body;
  const schema = constants.reduce<JsonFields>(
    (fixed, { trail, value }) => fixField(fixed, trail, value),
    content.schema,
  );
  return { ...body, contents: [{ ...content, schema }] };
}

function fixField(schema: JsonFields, [name, ...remaining]: readonly string[], value: string | number): JsonFields {
  if (name === undefined) return { type: typeof value === 'number' ? 'integer' : 'string', enum: [value] };
  const inner = getField(schema.properties, name);
  return {
    ...schema,
    properties: { ...(schema.properties as object), [name]: fixField(isFields(inner) ? inner : {}, remaining, value) },
    required: [...new Set([...toList(schema.required), name])],
  };
}

type AnalyzedOperation = { operation: ApiOperation; actionsByKey: ReadonlyMap<string, Action> };

/** Returns single-word values by key: location and name, like `query m`. Other values are never actions. */
function findActions(operation: ApiOperation): Map<string, Action> {
  const actions = [
    ...operation.inputs.flatMap(({ location, name, schema }) =>
      location === 'query' || location === 'header' ? toActions(location, [name], schema) : [],
    ),
    ...listLeaves(operation).flatMap(({ trail, schema }) => toActions('body', trail, schema)),
  ];
  return new Map(actions.map((action) => [`${action.location} ${action.name}`, action]));
}

function toActions(location: Action['location'], trail: readonly string[], schema: unknown): Action[] {
  const value = toList(getField(schema, 'enum'))[0] ?? getField(schema, 'example');
  const isSingleWord = typeof value === 'string' && /^[A-Za-z_][\w.:/#-]{0,99}$/.test(value);
  return isSingleWord ? [{ location, name: trail.join('.'), trail, value }] : [];
}

/** Names of parameters that hold the action, without separators. Single letters count only in a query. */
const actionNamePattern =
  /^(?:query:(?:m|a)|\w+:(?:ws|api|soap|rpc|rest|x)?(?:do|op|act|cmd|fn|func|rpc|verb|action|method|function|operation|command|request)(?:name)?)$/;
/** Names of parameters that can distinguish operations, with or without an action. */
const possibleActionNamePattern =
  /^\w+:(?:r|c|api|call|category|controller|entity|event|intent|kind|mode|module|object|option|page|report|resource|route|section|service|task|type|view)(?:name|type)?$/;

/** Normalizes a key: `query wsFunction` → `query:wsfunction`. For a nested field, only its own name is used. */
function normalizeKey(key: string): string {
  const space = key.indexOf(' ');
  const name = key.slice(Math.max(space, key.lastIndexOf('.'))).toLowerCase();
  return `${key.slice(0, space)}:${name.replaceAll(/[^a-z0-9]/g, '')}`;
}

/** Maximum number of keys that are checked, so that the work stays proportional to the number of requests. */
const maxKeys = 5;

/** Returns the keys whose values distinguish the operations; empty if all of them are the same operation. */
function findActionKeys(operations: readonly AnalyzedOperation[]): string[] {
  const values = new Map<string, string[]>();
  for (const [key, { value }] of operations.flatMap(({ actionsByKey }) => [...actionsByKey])) {
    const keyValues = values.get(key);
    if (keyValues) keyValues.push(value);
    else values.set(key, [value]);
  }
  const differing = [...values].flatMap(([key, valueList]) =>
    valueList.length < operations.length || new Set(valueList).size > 1 ? [key] : [],
  );
  // In nested objects, such a name usually tells the kind of the object, so it only counts as a possible key.
  const isNested = (key: string) => key.includes('.');
  const actionNameKeys = differing
    .filter((key) => actionNamePattern.test(normalizeKey(key)) && !isNested(key))
    .slice(0, maxKeys);
  const possibleKeys = differing
    .filter(
      (key) =>
        possibleActionNamePattern.test(normalizeKey(key)) ||
        (isNested(key) && actionNamePattern.test(normalizeKey(key))),
    )
    .filter((key) => values.get(key)?.length === operations.length && (actionNameKeys.length === 0 || !isNested(key)))
    .slice(0, maxKeys);
  if (actionNameKeys.length > 0) return [...actionNameKeys, ...possibleKeys];
  const distinguishing = possibleKeys.find((key) => isDistinguishing(key, operations));
  return distinguishing === undefined ? [] : [distinguishing];
}

/** Matches paths of programs, which respond according to their query. Other paths name a resource. */
const programPattern = /\.(?:ashx|asmx|aspx?|cfm|cgi|dll|do|jsp|php|pl)$/i;

/**
 * Returns true if at least two values of a key have an input that no other value has. For a program, one value is
 * enough.
 */
function isDistinguishing(key: string, operations: readonly AnalyzedOperation[]): boolean {
  const byValue = Map.groupBy(operations, ({ actionsByKey }) => actionsByKey.get(key)?.value);
  const sets = [...byValue.values()].map(
    (group) => new Set(group.flatMap(({ operation }) => listInputNames(operation))),
  );
  const counts = new Map<string, number>();
  for (const name of sets.flatMap((set) => [...set])) counts.set(name, (counts.get(name) ?? 0) + 1);
  const setsWithUniqueInputs = sets.filter((set) => [...set].some((name) => counts.get(name) === 1));
  const isProgramPath = programPattern.test(operations[0]?.operation.path ?? '');
  return setsWithUniqueInputs.length >= (isProgramPath ? 1 : 2);
}

function listInputNames(operation: ApiOperation): string[] {
  const fields = [...listFieldNames(operation)].map((name) => `body ${name}`);
  return [...operation.inputs.map(({ location, name }: ApiInput) => `${location} ${name}`), ...fields];
}
