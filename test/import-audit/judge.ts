/** Judges one imported operation: its outcome by the document and the tool, and its request on the wire. */
import { compareRequests, type Difference } from './compare.ts';
import { isObject, type Json, type JsonObject, toList, toObject, toText } from './json.ts';
import { getBasePaths } from './localize.ts';
import type { Outcome, Product, Reported } from './product.ts';
import type { Random } from './random.ts';
import { type Compared, decideOutcome, findLosses, type Loss } from './reader/expected-outcome.ts';
import { buildExpectedRequest, formType, type Inputs } from './reader/expected-request.ts';
import type { Body, Operation, Parameter } from './reader/operations.ts';
import { createSchemas, type Schemas } from './reader/schemas.ts';
import { Undefined } from './reader/wire-styles.ts';
import type { SwaggerClient } from './swagger-client.ts';
import { findBodyTarget, findParameterTargets, type Target, type Tool, toArgument } from './tool-places.ts';
import { type Context, createValueMaker, type Value, type ValueMaker } from './values.ts';
import { isJsonType, readMediaType, readRequest, type Stub, type WireRequest } from './wire.ts';

export type Described = {
  name: string;
  document: JsonObject;
  schemas: Schemas;
  maker: ValueMaker;
  credentials: ReadonlySet<string>;
};

export type OutcomeVerdict = { expected: Outcome; reported: Outcome; notes: string[]; losses: Loss[] };

export type WireVerdict =
  | {
      kind: 'compared';
      judge: 'swagger-client' | 'second reader';
      /** Those with `library.` before their class are by swagger-client alone; the second reader agrees with the tool. */
      differences: Difference[];
      /** Why swagger-client did not judge. */
      unable?: string;
      /** What the second reader alone finds. */
      doubts?: Difference[];
    }
  | { kind: 'refused'; reason: string }
  /** No standard says what the request would be, or no value was found. */
  | { kind: 'undecided'; reason: string };

export type Verdict = {
  document: string;
  operation: string;
  outcome: OutcomeVerdict;
  wire: WireVerdict | undefined;
  args: JsonObject;
  tool: string;
};

export function describe(name: string, document: JsonObject, version: Parameters<typeof createSchemas>[1]): Described {
  const schemas = createSchemas(document, version);
  return { name, document, schemas, maker: createValueMaker(schemas), credentials: findCredentialNames(document) };
}

/** Names of headers, query parameters and cookies that carry credentials, in lower case. */
function findCredentialNames(document: JsonObject): Set<string> {
  const schemes = {
    ...toObject(toObject(document.components).securitySchemes),
    ...toObject(document.securityDefinitions),
  };
  const names = Object.values(schemes).flatMap((scheme) => {
    const { name, type, scheme: kind, ...more } = toObject(scheme);
    // RFC 6750, 2.3: a bearer token as a query parameter.
    if (type === 'oauth2' || toText(kind).toLowerCase() === 'bearer') return ['access_token'];
    return more['x-amazon-apigateway-authtype'] === 'awsSigv4' ? signatureNames : [toText(name).toLowerCase()];
  });
  return new Set(names.filter((name) => name !== ''));
}

/** Parts of an AWS signature (Signature Version 4), in headers and in queries. */
const signatureNames = [
  'content-sha256',
  'date',
  'algorithm',
  'credential',
  'security-token',
  'signature',
  'signedheaders',
].map((name) => `x-amz-${name}`);

/** How values are made for a body of a media type; undefined where the document does not say how the body is written. */
export function getContext(body: Body): Context | undefined {
  const type = readMediaType(body.mediaType);
  if (isJsonType(type)) return 'json';
  if (type === formType) return 'form';
  if (type.startsWith('multipart/')) return 'multipart';
  if (type.startsWith('text/') && !type.endsWith('xml')) return 'json';
  if (/xml|yaml|ndjson|jsonl|x-www/.test(type)) return undefined;
  return 'bytes';
}

/** The body that a tool sends, of those that the document offers. */
export function chooseBody(operation: Operation, tool: Tool): Body | undefined {
  const { bodies } = operation;
  const said = Object.entries(tool.headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const byType = bodies.find(({ mediaType }) => readMediaType(mediaType) === readMediaType(toText(said)));
  if (byType) return byType;
  const isOf = (test: (type: string) => boolean) => bodies.find(({ mediaType }) => test(readMediaType(mediaType)));
  if (tool.body === 'form') return isOf((type) => type === formType) ?? bodies[0];
  if (tool.body === 'multipart') return isOf((type) => type.startsWith('multipart/')) ?? bodies[0];
  const binary = [...tool.fields].find(([name, field]) => name === tool.body && field.content === 'base64');
  if (binary)
    return (
      isOf((type) => type === readMediaType(toText(binary[1].media_type))) ??
      isOf((type) => !isJsonType(type) && type !== formType && !type.startsWith('multipart/')) ??
      bodies[0]
    );
  return (
    isOf((type) => type === 'application/json') ?? isOf((type) => isJsonType(type) && !type.includes('*')) ?? bodies[0]
  );
}

type Work = { described: Described; operation: Operation; tool: Tool; random: Random };

export function judgeOutcome(work: Work, reported: Reported): OutcomeVerdict {
  const losses = compareInputs(work).flatMap((compared) =>
    'kind' in compared ? [compared] : findLosses(compared, work.described.schemas, work.described.maker, work.random),
  );
  return { expected: decideOutcome(losses), reported: reported.outcome, notes: reported.notes, losses };
}

/** Each input of the document beside its place in the tool, or that it has none. */
function compareInputs({ described, operation, tool }: Work): (Compared | Loss)[] {
  const { schemas } = described;
  const properties = toObject(tool.inputSchema.properties);
  const auxiliary = findAuxiliary(tool);
  const required = new Set(toList(tool.inputSchema.required).filter((name) => !auxiliary.includes(toText(name))));
  const results: (Compared | Loss)[] = [];
  for (const [parameter, target] of findParameterTargets(tool, operation)) {
    const at = `${parameter.place} ${parameter.name}`;
    if (target.kind === 'none' && described.credentials.has(parameter.name.toLowerCase())) continue;
    if (target.kind === 'none') results.push({ kind: 'missing', at, what: 'input' });
    if (target.kind !== 'argument') continue;
    if (parameter.isRequired && !required.has(target.argument))
      results.push({ kind: 'loosened', at, what: 'required' });
    results.push({
      at,
      context: contextOf(parameter),
      wanted: schemas.convert(parameter.schema),
      offered: (properties[target.argument] ?? true) as JsonObject | boolean,
    });
  }
  const body = chooseBody(operation, tool);
  const context = body && getContext(body);
  if (!body || !context) return results;
  const wanted = schemas.convert(body.schema);
  const target = findBodyTarget(tool, []);
  if (target.kind === 'none') {
    if (hasInputs(wanted, schemas)) results.push({ kind: 'missing', at: 'body', what: 'input' });
    return results;
  }
  if (target.kind === 'whole') {
    if (operation.isBodyRequired && !required.has(target.argument))
      results.push({ kind: 'loosened', at: 'body', what: 'required' });
    results.push({
      at: 'body',
      context,
      wanted,
      offered: (properties[target.argument] ?? true) as JsonObject | boolean,
    });
    return results;
  }
  results.push({ at: 'body', context, wanted, offered: joinFields(target.targets, properties, required) });
  return results;
}

/** The arguments of a body as the schema of the object that they make. */
function joinFields(
  targets: ReadonlyMap<string, Target>,
  properties: JsonObject,
  required: ReadonlySet<Json>,
): JsonObject {
  const joined: JsonObject = {};
  const needed: string[] = [];
  for (const [name, target] of targets) {
    if (target.kind === 'constant') joined[name] = target.value === undefined ? true : { const: target.value };
    if (target.kind === 'constant') needed.push(name);
    if (target.kind !== 'argument') continue;
    joined[name] = properties[target.argument] ?? true;
    if (required.has(target.argument)) needed.push(name);
  }
  return { type: 'object', properties: joined, required: needed, additionalProperties: false };
}

function hasInputs(schema: JsonObject | boolean, schemas: Schemas): boolean {
  const resolved = schemas.resolve(schema);
  if (typeof resolved === 'boolean') return resolved;
  const { type, ...rest } = resolved;
  return Object.keys(rest).length > 0 || (type !== undefined && type !== 'object');
}

function contextOf({ place, mediaType, style, explode, allowReserved }: Parameter): Context {
  if (mediaType !== undefined && isJsonType(mediaType)) return 'json';
  if (place === 'querystring') return 'form';
  if (place === 'query' && allowReserved) return 'reserved';
  return !explode && /Delimited|tab/.test(style) ? 'cookie' : place;
}

/** Inputs of a call, made from the document. */
export type Prepared = { inputs: Inputs; args: JsonObject; unplaced: string[] };

/** @throws Undefined where no value was found for a required input */
export function prepareCall({ described, operation, tool, random }: Work): Prepared {
  const { schemas, maker } = described;
  const args: JsonObject = {};
  const unplaced: string[] = [];
  const inputs: Inputs = { parameters: new Map() };
  const options = { random, share: 0.6, variant: random.below(6) };
  for (const [parameter, target] of findParameterTargets(tool, operation)) {
    if (target.kind === 'none' && described.credentials.has(parameter.name.toLowerCase())) continue;
    if (!parameter.isRequired && target.kind !== 'constant' && !random.chance(0.65)) continue;
    const value = makeParameter(maker, schemas.convert(parameter.schema), parameter, options);
    if (value === undefined) {
      if (parameter.isRequired) throw new Undefined(`no value for ${parameter.place} ${parameter.name}`);
      continue;
    }
    if (target.kind === 'constant' && target.value !== undefined)
      inputs.parameters.set(parameter, target.value as Value);
    else inputs.parameters.set(parameter, value);
    if (target.kind === 'argument') args[target.argument] = toArgument(value);
    if (target.kind === 'none') unplaced.push(`${parameter.place} ${parameter.name}`);
  }
  prepareBody({ described, operation, tool, random }, { inputs, args, unplaced }, options);
  const required = toList(tool.inputSchema.required);
  for (const name of findAuxiliary(tool)) if (required.includes(name) && !(name in args)) args[name] = 'audit.bin';
  return { inputs, args, unplaced };
}

/** Arguments that name or type a file, which the document does not have. */
function findAuxiliary(tool: Tool): string[] {
  return [...tool.fields.values()].flatMap((field) =>
    [field.file_name, field.media_type].flatMap((one) => (isObject(one) ? [toText(one.argument)] : [])),
  );
}

type MakeOptions = { random: Random; share: number; variant: number };

/** Empty values and nested ones have no defined form outside of bodies. */
function makeParameter(
  maker: ValueMaker,
  schema: JsonObject | boolean,
  parameter: Parameter,
  options: MakeOptions,
): Value | undefined {
  const value = maker.make(schema, { ...options, context: contextOf(parameter) })?.value;
  if (parameter.mediaType !== undefined) return value;
  const isEmpty = value === '' || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
  return isEmpty ? undefined : value;
}

function prepareBody({ operation, described, tool }: Work, prepared: Prepared, options: MakeOptions): void {
  const body = chooseBody(operation, tool);
  if (!body) return;
  const context = getContext(body);
  if (context === undefined) throw new Undefined(`a body of ${body.mediaType}`);
  const schema = described.schemas.convert(body.schema);
  const made =
    described.maker.make(schema, { ...options, context }) ??
    described.maker.make(schema, { ...options, context, share: 0 });
  if (!made) throw new Undefined('no value for the body');
  const isEmptyForm =
    (context === 'form' || context === 'multipart') && isObject(made.value) && Object.keys(made.value).length === 0;
  const value = isEmptyForm
    ? (described.maker.make(schema, { ...options, context, share: 1 })?.value ?? made.value)
    : made.value;
  if ((context === 'form' || context === 'multipart') && isObject(value) && Object.keys(value).length === 0)
    throw new Undefined('an empty form');
  const names = isObject(value) ? Object.keys(value) : [];
  const target = findBodyTarget(tool, names);
  prepared.inputs.body = { of: body, value };
  if (target.kind === 'none') prepared.unplaced.push('body');
  if (target.kind === 'whole') prepared.args[target.argument] = toArgument(value);
  if (target.kind !== 'fields') return;
  for (const [name, one] of Object.entries(value as { [name: string]: Value })) {
    const place = target.targets.get(name);
    if (place?.kind === 'argument') prepared.args[place.argument] = toArgument(one);
    if (place === undefined || place.kind === 'none') prepared.unplaced.push(`body ${name}`);
    if (place?.kind === 'constant' && place.value !== undefined)
      (value as { [name: string]: Value })[name] = place.value as Value;
  }
}

/** The request of the second reader, at that server of the document which was called. */
function buildOwnRequest(
  { operation, described }: Work,
  inputs: Inputs,
  found: WireRequest | undefined,
): { request: WireRequest; base: string } {
  const bases = getBasePaths(described.document, operation.path, operation.raw);
  const requests = bases.map((base) => ({ base, request: buildExpectedRequest(operation, base, inputs) }));
  const [first] = requests;
  if (!first) throw new Undefined('no server');
  return requests.find(({ request }) => request.path === found?.path) ?? first;
}

export type Wired = { verdict: WireVerdict; args: JsonObject };

export type Judges = { product: Product; stub: Stub; slug: string; swaggerClient: SwaggerClient };

export async function judgeWire(
  work: Work,
  reported: Reported,
  { product, stub, slug, swaggerClient }: Judges,
): Promise<Wired> {
  const { operation, described, tool } = work;
  let args: JsonObject = {};
  try {
    const prepared = prepareCall(work);
    args = prepared.args;
    leaveOutNamed(prepared, reported);
    buildOwnRequest(work, prepared.inputs, undefined);
    stub.take();
    const result = await product.call(slug, tool.name, args);
    const [arrived] = stub.take();
    if (!arrived) return { verdict: { kind: 'refused', reason: result.text }, args };
    const found = readRequest(arrived);
    const { request: own, base } = buildOwnRequest(work, prepared.inputs, found);
    const byOwn = compareRequests(own, found, described.credentials);
    const theirs = await swaggerClient.build(described.document, operation, prepared.inputs, base);
    if ('unable' in theirs)
      return { verdict: { kind: 'compared', judge: 'second reader', differences: byOwn, unable: theirs.unable }, args };
    const byTheirs = compareRequests(theirs.request, found, described.credentials);
    const differences =
      byOwn.length > 0 ? byTheirs : byTheirs.map(({ id, ...rest }) => ({ id: `library.${id}`, ...rest }));
    return {
      verdict: {
        kind: 'compared',
        judge: 'swagger-client',
        differences,
        ...(byTheirs.length === 0 && byOwn.length > 0 && { doubts: byOwn }),
      },
      args,
    };
  } catch (error) {
    if (error instanceof Undefined) return { verdict: { kind: 'undecided', reason: error.message }, args };
    throw error;
  }
}

/** Inputs without a place are no difference on the wire where the report names them. */
function leaveOutNamed({ inputs, unplaced }: Prepared, reported: Reported): void {
  if (reported.outcome !== 'partial') return;
  const isNamed = (name: string) => reported.notes.some((note) => note.includes(name));
  for (const parameter of inputs.parameters.keys())
    if (unplaced.includes(`${parameter.place} ${parameter.name}`) && isNamed(parameter.name))
      inputs.parameters.delete(parameter);
}
