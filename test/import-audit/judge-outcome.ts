/** Judges the outcome that the import reports for an operation. */
import { chooseBody, getBodyContext, getParameterContext, isCredential } from './audit-document.ts';
import { isSameJson, type Json, type JsonObject, toList, toObject, toText } from './json.ts';
import { findAuxiliary, type Work } from './prepare-call.ts';
import type { Outcome, Reported } from './product.ts';
import { type Compared, decideOutcome, findLosses, type Loss } from './reader/expected-outcome.ts';
import type { Schemas } from './reader/schemas.ts';
import { findBodyTarget, findParameterTargets, isListByName, type Target, type Tool } from './tool-arguments.ts';

export type OutcomeVerdict = {
  expected: Outcome;
  reported: Outcome;
  notes: string[];
  losses: Loss[];
  /** Media types whose schema differs from the tool's body and that no note names. */
  otherBodies: string[];
};

export function judgeOutcome(work: Work, reported: Reported): OutcomeVerdict {
  const { schemas, maker } = work.described;
  const required = findRequired(work.tool);
  const compared = [...compareParameters(work, required), ...compareBody(work, required)];
  const losses = compared.flatMap((one) => ('kind' in one ? [one] : findLosses(one, schemas, maker, work.random)));
  const { outcome, notes } = reported;
  return {
    expected: decideOutcome(losses),
    reported: outcome,
    notes,
    losses,
    otherBodies: listOtherBodies(work, notes),
  };
}

function listOtherBodies({ operation, tool }: Work, notes: readonly string[]): string[] {
  const chosen = chooseBody(operation, tool);
  const others = operation.bodies.filter((body) => !isSameJson(body.schema, chosen?.schema));
  return others.map(({ mediaType }) => mediaType).filter((type) => !notes.some((note) => note.includes(type)));
}

/** Returns the required arguments that exist in the document. */
function findRequired(tool: Tool): Set<string> {
  const auxiliary = findAuxiliary(tool);
  const required = toList(tool.inputSchema.required).map(toText);
  return new Set(required.filter((name) => !auxiliary.includes(name)));
}

const getSchema = (tool: Tool, argument: string) =>
  (toObject(tool.inputSchema.properties)[argument] ?? true) as JsonObject | boolean;

function* compareParameters({ described, operation, tool }: Work, required: Set<string>): Generator<Compared | Loss> {
  for (const [parameter, target] of findParameterTargets(tool, operation)) {
    const at = `${parameter.place} ${parameter.name}`;
    if (target.kind === 'none' && !isCredential(described, parameter, operation))
      yield { kind: 'missing', at, what: 'input' };
    if (target.kind !== 'argument') continue;
    if (parameter.isRequired && !required.has(target.argument)) yield { kind: 'loosened', at, what: 'required' };
    const isList = toObject(parameter.schema).type !== 'array' && isListByName(tool, target.argument, parameter.name);
    const schema: Json = isList ? { type: 'array', items: parameter.schema } : parameter.schema;
    const documentSchema = described.schemas.convert(schema);
    yield { at, context: getParameterContext(parameter), documentSchema, toolSchema: getSchema(tool, target.argument) };
  }
}

function* compareBody({ described, operation, tool }: Work, required: Set<string>): Generator<Compared | Loss> {
  const { schemas } = described;
  const body = chooseBody(operation, tool);
  const context = body && getBodyContext(body, schemas);
  if (!body) return;
  const documentSchema = schemas.convert(body.schema);
  const target = findBodyTarget(tool, []);
  if (!context) {
    // The caller writes such a body as text, so its schema rules are not enforced.
    if (target.kind === 'none') yield { kind: 'missing', at: 'body', what: 'input' };
    else if (hasRules(documentSchema, schemas)) yield { kind: 'loosened', at: 'body', what: 'schema' };
    return;
  }
  if (target.kind === 'none') {
    if (hasInputs(documentSchema, schemas)) yield { kind: 'missing', at: 'body', what: 'input' };
  } else if (target.kind === 'whole') {
    const isLoose = operation.isBodyRequired && !required.has(target.argument);
    if (isLoose) yield { kind: 'loosened', at: 'body', what: 'required' };
    yield { at: 'body', context, documentSchema, toolSchema: getSchema(tool, target.argument) };
  } else yield { at: 'body', context, documentSchema, toolSchema: joinFields(tool, target.targets, required) };
}

/** Returns the arguments of a body as the schema of the object that they form. */
function joinFields(tool: Tool, targets: ReadonlyMap<string, Target>, required: ReadonlySet<string>): JsonObject {
  const properties: JsonObject = {};
  const requiredNames: string[] = [];
  for (const [name, target] of targets) {
    if (target.kind === 'none') continue;
    if (target.kind === 'argument') properties[name] = getSchema(tool, target.argument) as Json;
    else properties[name] = target.value === undefined ? true : { const: target.value };
    if (target.kind === 'constant' || required.has(target.argument)) requiredNames.push(name);
  }
  return { type: 'object', properties, required: requiredNames, additionalProperties: false };
}

function hasRules(schema: JsonObject | boolean, schemas: Schemas): boolean {
  const resolved = schemas.resolve(schema);
  if (typeof resolved === 'boolean') return false;
  return Object.keys(resolved).some(
    (name) => !name.startsWith('x-') && !(name === 'type' && resolved.type === 'string'),
  );
}

function hasInputs(schema: JsonObject | boolean, schemas: Schemas): boolean {
  const resolved = schemas.resolve(schema);
  if (typeof resolved === 'boolean') return resolved;
  const { type, ...rest } = resolved;
  return Object.keys(rest).some((name) => !name.startsWith('x-')) || (type !== undefined && type !== 'object');
}
