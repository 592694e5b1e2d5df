/** Builds the requests of `--reports`: every read operation of the catalog with each of its inputs. */
import { operationList } from '../src/operations/index.ts';
import type { Operation } from '../src/operations/operation.ts';
import { buildRestRequest, type RestRequest } from '../src/operations/routes.ts';

/** Request of an operation. `mayMiss`: a 404 is possible, because two inputs may contradict or one may name nothing. */
export type Request = RestRequest & { operation: string; input: object; mayMiss: boolean };

export type Known = {
  /** Values of each input by name, the typical one first. An operation with any other input is an error. */
  values: { [input: string]: readonly unknown[] };
  /** Complete inputs of operations that take a document. */
  whole: { [operation: string]: object };
};

/** Operations that change nothing and send no upstream request. */
export const readingOperations: readonly Operation[] = operationList.filter((op) => op.effect === 'read');

/** Returns requests without optional inputs, with each value of one input, and with each pair of two inputs' values. */
export function requestsOf(op: Operation, known: Known): Request[] {
  const { values, whole } = known;
  const fixed = whole[op.name];
  if (fixed) return [{ ...buildRestRequest(op.route, fixed), operation: op.name, input: fixed, mayMiss: false }];
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
  const least = Object.fromEntries(required.map((name) => [name, values[name]?.[0]]));
  const singles = names.flatMap((name) => (values[name] ?? []).map((value) => ({ name, value })));
  const pairs = singles.flatMap((one) => singles.map((other) => ({ ...least, ...inputOf(one), ...inputOf(other) })));
  const distinct = new Map([least, ...pairs].map((input) => [JSON.stringify(Object.entries(input).sort()), input]));
  return [...distinct.values()].map((input) => ({
    ...buildRestRequest(op.route, input),
    operation: op.name,
    input,
    mayMiss: input !== least,
  }));
}

const inputOf = ({ name, value }: { name: string; value: unknown }) => ({ [name]: value });
