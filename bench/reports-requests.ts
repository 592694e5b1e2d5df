/** Builds the requests of `--reports`: every read operation of the catalog with each of its inputs. */
import { operationList } from '@toolhost/server/operations';
import { buildRestRequest, type RestRequest } from '@toolhost/server/operations/routes';
import type { Operation } from '../apps/server/src/operations/operation.ts';

/** Request of an operation. `mayBeNotFound`: a 404 is possible, because two inputs may contradict or one may name nothing. */
export type ReportRequest = RestRequest & { operation: string; input: object; mayBeNotFound: boolean };

export type KnownInputs = {
  /** Values of each input by name, the typical one first. An operation with any other input is an error. */
  values: { [input: string]: readonly unknown[] };
  /** Complete inputs of operations that take a document. */
  documents: { [operation: string]: object };
};

/** Operations that change nothing and send no upstream request. */
export const readOperations: readonly Operation[] = operationList.filter((op) => op.effect === 'read');

/** Returns requests without optional inputs, with each value of one input, and with each pair of two inputs' values. */
export function buildRequests(op: Operation, knownInputs: KnownInputs): ReportRequest[] {
  const { values, documents } = knownInputs;
  const documentInput = documents[op.name];
  if (documentInput)
    return [
      { ...buildRestRequest(op.route, documentInput), operation: op.name, input: documentInput, mayBeNotFound: false },
    ];
  const names = Object.keys(op.input.shape);
  const unknown = names.filter((name) => !(name in values));
  if (unknown.length > 0)
    throw new Error(
      `${op.name} takes ${unknown.join(', ')}, but the bench has no value for it. Add one to reports-inputs.ts.`,
    );
  // A path parameter has no default.
  const required = names.filter(
    (name) => op.route.path.includes(`{${name}}`) || op.input.shape[name]?.safeParse(undefined).success === false,
  );
  const requiredInput = Object.fromEntries(required.map((name) => [name, values[name]?.[0]]));
  const singles = names.flatMap((name) => (values[name] ?? []).map((value) => ({ name, value })));
  const pairs = singles.flatMap((first) =>
    singles.map((second) => ({ ...requiredInput, ...toInput(first), ...toInput(second) })),
  );
  const distinct = new Map(
    [requiredInput, ...pairs].map((input) => [JSON.stringify(Object.entries(input).sort()), input]),
  );
  return [...distinct.values()].map((input) => ({
    ...buildRestRequest(op.route, input),
    operation: op.name,
    input,
    mayBeNotFound: input !== requiredInput,
  }));
}

const toInput = ({ name, value }: { name: string; value: unknown }) => ({ [name]: value });
