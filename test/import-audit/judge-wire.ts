/** Judges the request that a tool sends. */
import { compareRequests, type Difference } from './compare.ts';
import type { JsonObject } from './json.ts';
import { getBasePaths } from './localize.ts';
import { isEmpty, type Prepared, prepareCall, type Work } from './prepare-call.ts';
import { type Product, type Reported, secret } from './product.ts';
import { buildExpectedRequest, type Inputs } from './reader/expected-request.ts';
import { UndefinedSerialization } from './reader/wire-styles.ts';
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
    removeReportedInputs(prepared, reported);
    return { verdict: await callAndCompare(work, prepared, judges), args };
  } catch (error) {
    if (error instanceof UndefinedSerialization) return { verdict: { kind: 'undecided', reason: error.message }, args };
    throw error;
  }
}

/** Removes parameters without an argument from the comparison if the report names them. */
function removeReportedInputs({ inputs, unplaced }: Prepared, { outcome, notes }: Reported): void {
  for (const parameter of inputs.parameters.keys()) {
    const isNamed = outcome === 'partial' && notes.some((note) => note.includes(parameter.name));
    if (isNamed && unplaced.includes(`${parameter.place} ${parameter.name}`)) inputs.parameters.delete(parameter);
  }
}

async function callAndCompare(work: Work, { inputs, args }: Prepared, judges: Judges): Promise<WireVerdict> {
  const { described, operation, tool } = work;
  const { product, stub, slug, swaggerClient } = judges;
  buildSecondReaderRequest(work, inputs);
  stub.take();
  const result = await product.call(slug, tool.name, args);
  const [arrived] = stub.take();
  if (!arrived) return { kind: 'refused', reason: result.text };
  const found = readRequest(arrived);
  const { request, base } = buildSecondReaderRequest(work, inputs, found);
  // An optional body without fields may be omitted.
  const isOptionalAndEmpty = !operation.isBodyRequired && isEmpty(inputs.body?.value);
  const compare = (expected: WireRequest) =>
    compareRequests(expected, found, described.credentials).filter(
      ({ id }) => !isOptionalAndEmpty || !id.startsWith('body.'),
    );
  const secondReaderDifferences = compare(request);
  const libraryResult = await swaggerClient.build(described.document, operation, inputs, base);
  if ('unable' in libraryResult)
    return {
      kind: 'compared',
      judge: 'second reader',
      differences: secondReaderDifferences,
      unable: libraryResult.unable,
    };
  const libraryDifferences = compare(libraryResult.request);
  const isLibraryAlone = secondReaderDifferences.length === 0;
  return {
    kind: 'compared',
    judge: 'swagger-client',
    differences: libraryDifferences.map((one) => (isLibraryAlone ? { ...one, id: `library.${one.id}` } : one)),
    ...(libraryDifferences.length === 0 && secondReaderDifferences.length > 0 && { doubts: secondReaderDifferences }),
  };
}

type SecondReaderRequest = { request: WireRequest; base: string };

/** Builds the request of the second reader at the server of the document that was called. */
function buildSecondReaderRequest(
  { operation, described }: Work,
  inputs: Inputs,
  found?: WireRequest,
): SecondReaderRequest {
  const bases = getBasePaths(described.document, operation.path, operation.raw, secret);
  const requests = bases.map((base) => ({ base, request: buildExpectedRequest(operation, base, inputs) }));
  const [first] = requests;
  if (!first) throw new UndefinedSerialization('no server');
  return requests.find(({ request }) => request.path === found?.path) ?? first;
}
