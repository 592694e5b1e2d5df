import { leftOutText } from '../../domain/added-arguments.ts';
import { isRawNumber } from '../../domain/json/json.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';

/**
 * Returns lines for a result about values that were passed and not sent: arguments that the tool does not declare, and
 * null values that the schema does not allow.
 */
export function leftOutLines(given: Arguments, sent: Arguments): string[] {
  const missing = missingValues(given, sent, '');
  const paths = (areNull: boolean) => missing.filter(({ isNull }) => isNull === areNull).map(({ path }) => path);
  return [
    ...leftOutText(paths(false), 'not declared by the tool'),
    ...leftOutText(paths(true), 'null is not allowed by the schema'),
  ];
}

type Missing = { path: string; isNull: boolean };

/** Collects missing values. Compares by identity first, because unchanged values are the same object. */
function missingValues(given: unknown, sent: unknown, path: string): Missing[] {
  if (given === sent || !hasValues(given) || !hasValues(sent)) return [];
  return Object.entries(given).flatMap(([name, value]) => {
    const at = path === '' ? name : `${path}.${name}`;
    if (!Object.hasOwn(sent, name)) return [{ path: at, isNull: value === null }];
    return missingValues(value, sent[name], at);
  });
}

function hasValues(value: unknown): value is { [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !isRawNumber(value);
}
