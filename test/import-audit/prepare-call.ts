/** Generates the inputs of a call from the document, and the corresponding arguments of the tool. */

import { type AuditDocument, chooseBody, getBodyContext, getParameterContext, isCredential } from './audit-document.ts';
import { isObject, type JsonObject, toList, toText } from './json.ts';
import type { Random } from './random.ts';
import type { Inputs } from './reader/expected-request.ts';
import type { Operation, Parameter } from './reader/operations.ts';
import { UndefinedSerialization } from './reader/wire-styles.ts';
import { findBodyTarget, findParameterTargets, isListByName, type Tool, toArgument } from './tool-arguments.ts';
import type { Value } from './values.ts';
import { readMediaType } from './wire.ts';

export type Work = { described: AuditDocument; operation: Operation; tool: Tool; random: Random };

/** `unplaced` lists the inputs without an argument. */
export type Prepared = { inputs: Inputs; args: JsonObject; unplaced: string[] };

/** @throws UndefinedSerialization if no value was found for a required input */
export function prepareCall(work: Work): Prepared {
  const { described, operation, tool, random } = work;
  const prepared: Prepared = { inputs: { parameters: new Map() }, args: {}, unplaced: [] };
  const { inputs, args, unplaced } = prepared;
  const variant = random.below(6);
  for (const [parameter, target] of findParameterTargets(tool, operation)) {
    const at = `${parameter.place} ${parameter.name}`;
    const parameterRandom = random.fork(at);
    if (target.kind === 'none' && isCredential(described, parameter, operation)) continue;
    if (!parameterRandom.chance(0.65) && !parameter.isRequired && target.kind !== 'constant') continue;
    const value = makeParameter(described, parameter, { random: parameterRandom, share: 0.6, variant });
    if (value === undefined && parameter.isRequired) throw new UndefinedSerialization(`no value for ${at}`);
    if (value === undefined) continue;
    const constant = target.kind === 'constant' ? target.value : undefined;
    inputs.parameters.set(parameter, constant === undefined ? value : (constant as Value));
    if (target.kind === 'argument') {
      const isList = !Array.isArray(value) && isListByName(tool, target.argument, parameter.name);
      args[target.argument] = toArgument(isList ? [value] : value);
    }
    if (target.kind === 'none') unplaced.push(at);
  }
  prepareBody(work, prepared, { random: random.fork('body'), share: 0.6, variant });
  const required = toList(tool.inputSchema.required);
  for (const name of findAuxiliary(tool)) if (required.includes(name) && !(name in args)) args[name] = 'audit.bin';
  return prepared;
}

/** Returns the arguments for a file's name or type, which the document does not have. */
export function findAuxiliary(tool: Tool): string[] {
  const names = [...tool.fields.values()].flatMap(({ file_name: name, media_type: type }) => [name, type]);
  return names.flatMap((one) => (isObject(one) ? [toText(one.argument)] : []));
}

type MakeOptions = { random: Random; share: number; variant: number };

/** Generates a value. Empty values and null have no defined serialization outside of bodies. */
function makeParameter(
  { maker, schemas }: AuditDocument,
  parameter: Parameter,
  options: MakeOptions,
): Value | undefined {
  const context = getParameterContext(parameter);
  const value = maker.make(schemas.convert(parameter.schema), { ...options, context })?.value;
  if (parameter.mediaType !== undefined) return value;
  return value === null || value === '' || isEmpty(value) ? undefined : value;
}

export const isEmpty = (value: Value | undefined) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

function prepareBody({ operation, described, tool }: Work, prepared: Prepared, options: MakeOptions): void {
  const body = chooseBody(operation, tool);
  if (!body) return;
  const { maker, schemas } = described;
  const context = getBodyContext(body, schemas);
  if (context === undefined) throw new UndefinedSerialization(`a body of ${body.mediaType}`);
  const schema = schemas.convert(body.schema);
  const isForm = context === 'form' || context === 'multipart';
  const values = [options.share, 0, 1].map((share) => maker.make(schema, { ...options, context, share })?.value);
  const value =
    values.find((one) => one !== undefined && !((isForm || !operation.isBodyRequired) && isEmpty(one))) ??
    (isForm ? undefined : values[0]);
  if (value === undefined)
    throw new UndefinedSerialization(
      values.some((one) => one !== undefined) ? 'an empty form' : 'no value for the body',
    );
  const chosenType = value instanceof Uint8Array ? pickType(readMediaType(body.mediaType)) : undefined;
  prepared.inputs.body = { definition: body, value, ...(chosenType !== undefined && { chosenType }) };
  placeBody(tool, prepared, value, chosenType);
}

function placeBody(tool: Tool, { args, unplaced }: Prepared, value: Value, chosenType: string | undefined): void {
  const target = findBodyTarget(tool, isObject(value) ? Object.keys(value) : []);
  if (target.kind === 'none') unplaced.push('body');
  if (target.kind === 'whole') {
    const argument = toArgument(value);
    args[target.argument] = chosenType === undefined ? argument : `data:${chosenType};base64,${argument}`;
  }
  if (target.kind !== 'fields' || !isObject(value)) return;
  const fields = value as { [name: string]: Value };
  for (const [name, one] of Object.entries(fields)) {
    const place = target.targets.get(name);
    if (place?.kind === 'argument') args[place.argument] = toArgument(one);
    if (place === undefined || place.kind === 'none') unplaced.push(`body ${name}`);
    if (place?.kind === 'constant' && place.value !== undefined) fields[name] = place.value as Value;
  }
}

/** Returns the type that the caller chooses for a range such as `image/*`; undefined for a specific type. */
function pickType(mediaType: string): string | undefined {
  if (!mediaType.includes('*')) return undefined;
  const defaultTypes: Record<string, string> = {
    'image/*': 'image/png',
    'audio/*': 'audio/mpeg',
    'video/*': 'video/mp4',
  };
  return defaultTypes[mediaType] ?? 'application/pdf';
}
