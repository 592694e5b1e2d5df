/** The requests of `--reports`: every reading operation of the catalogue, with every input that it takes. */
import { operationList } from '../src/operations/index.ts';
import type { Operation } from '../src/operations/operation.ts';
import { buildRestRequest, type RestRequest } from '../src/operations/routes.ts';

/** `mayMiss`: two of its inputs may not go together, or one of them names nothing, so that the answer may be a 404. */
export type Request = RestRequest & { operation: string; input: object; mayMiss: boolean };

export type Known = {
  /** Values of each input by its name, the usual one first. An operation that takes another input is refused. */
  values: { [input: string]: readonly unknown[] };
  /** Whole inputs of operations that take a document. */
  whole: { [operation: string]: object };
};

/** Operations that change nothing and reach no upstream. */
export const readingOperations: readonly Operation[] = operationList.filter((op) => op.effect === 'read');

/** Without optional inputs, with each value of one, and with each pair of values of two. */
export function requestsOf(op: Operation, known: Known): Request[] {
  const { values, whole } = known;
  const fixed = whole[op.name];
  if (fixed) return [{ ...buildRestRequest(op.route, fixed), operation: op.name, input: fixed, mayMiss: false }];
  const names = Object.keys(op.input.shape);
  const unknown = names.filter((name) => !(name in values));
  if (unknown.length > 0) throw new Error(`${op.name} takes ${unknown.join(', ')}, for which the bench has no value`);
  // A field of the path has no default there.
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
