/** Judges the request that a tool sends. */
import { compareRequests, type Difference } from './compare.ts';
import type { JsonObject } from './json.ts';
import { getBasePaths } from './localize.ts';
import { isEmpty, type Prepared, prepareCall, type Work } from './prepare-call.ts';
import { type Product, type Reported, secret } from './product.ts';
import { buildExpectedRequest, type Inputs } from './reader/expected-request.ts';
import { UndefinedForm } from './reader/wire-styles.ts';
import type { SwaggerClient } from './swagger-client.ts';
import { readRequest, type Stub, type WireRequest } from './wire.ts';

export type WireVerdict =
  | {
      kind: 'compared';
      judge: 'swagger-client' | 'second reader';
      /**
       * Differences. A class with the prefix `library.` is found by swagger-client alone; the second reader agrees with
       * the tool.
       */
      differences: Difference[];
      /** Reason why swagger-client did not judge the request. */
      unable?: string;
      /** Differences that only the second reader finds. */
      doubts?: Difference[];
    }
  | { kind: 'refused'; reason: string }
  /** The expected request is not defined by any standard, or no value was found. */
  | { kind: 'undecided'; reason: string };

export type Judges = { product: Product; stub: Stub; slug: string; swaggerClient: SwaggerClient };

/** `args` are the arguments of the call. */
export type Judged = { verdict: WireVerdict; args: JsonObject };

export async function judgeWire(work: Work, reported: Reported, judges: Judges): Promise<Judged> {
  let args: JsonObject = {};
  try {
    const prepared = prepareCall(work);
    args = prepared.args;
    leaveOutNamed(prepared, reported);
    return { verdict: await callAndCompare(work, prepared, judges), args };
  } catch (error) {
    if (error instanceof UndefinedForm) return { verdict: { kind: 'undecided', reason: error.message }, args };
    throw error;
  }
}

/** Removes parameters without an argument from the comparison if the report names them. */
function leaveOutNamed({ inputs, unplaced }: Prepared, { outcome, notes }: Reported): void {
  for (const parameter of inputs.parameters.keys()) {
    const isNamed = outcome === 'partial' && notes.some((note) => note.includes(parameter.name));
    if (isNamed && unplaced.includes(`${parameter.place} ${parameter.name}`)) inputs.parameters.delete(parameter);
  }
}

async function callAndCompare(work: Work, { inputs, args }: Prepared, judges: Judges): Promise<WireVerdict> {
  const { described, operation, tool } = work;
  const { product, stub, slug, swaggerClient } = judges;
  buildOwnRequest(work, inputs);
  stub.take();
  const result = await product.call(slug, tool.name, args);
  const [arrived] = stub.take();
  if (!arrived) return { kind: 'refused', reason: result.text };
  const found = readRequest(arrived);
  const { request, base } = buildOwnRequest(work, inputs, found);
  // An optional body without fields may be omitted.
  const isFree = !operation.isBodyRequired && isEmpty(inputs.body?.value);
  const compare = (expected: WireRequest) =>
    compareRequests(expected, found, described.credentials).filter(({ id }) => !isFree || !id.startsWith('body.'));
  const byOwn = compare(request);
  const theirs = await swaggerClient.build(described.document, operation, inputs, base);
  if ('unable' in theirs)
    return { kind: 'compared', judge: 'second reader', differences: byOwn, unable: theirs.unable };
  const byTheirs = compare(theirs.request);
  const isTheirsAlone = byOwn.length === 0;
  return {
    kind: 'compared',
    judge: 'swagger-client',
    differences: byTheirs.map((one) => (isTheirsAlone ? { ...one, id: `library.${one.id}` } : one)),
    ...(byTheirs.length === 0 && byOwn.length > 0 && { doubts: byOwn }),
  };
}

type OwnRequest = { request: WireRequest; base: string };

/** Builds the request of the second reader at the server of the document that was called. */
function buildOwnRequest({ operation, described }: Work, inputs: Inputs, found?: WireRequest): OwnRequest {
  const bases = getBasePaths(described.document, operation.path, operation.raw, secret);
  const requests = bases.map((base) => ({ base, request: buildExpectedRequest(operation, base, inputs) }));
  const [first] = requests;
  if (!first) throw new UndefinedForm('no server');
  return requests.find(({ request }) => request.path === found?.path) ?? first;
}
