import { isRawNumber } from '@toolhost/json/json';
import { formatIgnoredArguments } from '@toolhost/tool-config/added-arguments';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';

/**
 * Returns lines for a result about values that were passed and not sent: arguments that the tool does not declare, and
 * null values that the schema does not allow.
 */
export function formatOmittedArguments(input: Arguments, sent: Arguments): string[] {
  const omitted = findOmittedValues(input, sent, '');
  const getPaths = (isNullGroup: boolean) =>
    omitted.filter(({ isNull }) => isNull === isNullGroup).map(({ path }) => path);
  return [
    ...formatIgnoredArguments(getPaths(false), 'not declared by the tool'),
    ...formatIgnoredArguments(getPaths(true), 'null is not allowed by the schema'),
  ];
}

type OmittedValue = { path: string; isNull: boolean };

/** Finds values of `input` that `sent` lacks. An unchanged object is the same in both, and is not searched. */
function findOmittedValues(input: unknown, sent: unknown, path: string): OmittedValue[] {
  if (input === sent || !hasValues(input) || !hasValues(sent)) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const valuePath = path === '' ? name : `${path}.${name}`;
    if (!Object.hasOwn(sent, name)) return [{ path: valuePath, isNull: value === null }];
    return findOmittedValues(value, sent[name], valuePath);
  });
}

function hasValues(value: unknown): value is { [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !isRawNumber(value);
}
