import type { OutputUnit } from '@cfworker/json-schema';
import { isSchemaObject, type JsonSchema, resolveReference } from '../domain/json-schema.ts';
import { didYouMean, dotted, shown } from '../domain/problems.ts';

/** Keywords that only report that something inside them failed, which is reported by itself. */
const wrappers = new Set([
  'properties',
  'items',
  'prefixItems',
  'additionalProperties',
  'propertyNames',
  'dependentSchemas',
  '$ref',
  'allOf',
  'if',
]);

/** Keywords that can also fail by themselves, with nothing wrong inside. */
const alternatives = new Set(['anyOf', 'oneOf', 'contains']);

const maxValuesShown = 50;

/** Turns what the validator reports into sentences that say where, what was found and what is allowed. */
export function problemTexts(units: readonly OutputUnit[], schema: JsonSchema, args: unknown): string[] {
  return units
    .map((unit, index) => ({ unit, before: units[index - 1] }))
    .filter(({ unit }) => !wrappers.has(unit.keyword) && !(alternatives.has(unit.keyword) && hasInner(unit, units)))
    .map(({ unit, before }) => problemText(unit, before, schema, args));
}

function hasInner(outer: OutputUnit, units: readonly OutputUnit[]): boolean {
  return units.some((unit) => unit.keywordLocation.startsWith(`${outer.keywordLocation}/`));
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function step(value: unknown, key: string): unknown {
  return Object.hasOwn(Object(value), key) ? (value as JsonSchema)[key] : undefined;
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce(step, value);
}

/** What a keyword says; a step `$ref` goes on where the reference leads. */
function keywordAt(root: JsonSchema, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => {
    const next = step(value, key);
    return key === '$ref' && typeof next === 'string' ? resolveReference(root, next) : next;
  }, root);
}

function problemText(unit: OutputUnit, before: OutputUnit | undefined, schema: JsonSchema, args: unknown): string {
  const path = pointerParts(unit.instanceLocation);
  const limit = keywordAt(schema, pointerParts(unit.keywordLocation));
  const where = dotted(path) || 'arguments';
  const found = shown(at(args, path));
  switch (unit.keyword) {
    case 'required': {
      const name = /"(.*)"/s.exec(unit.error)?.[1] ?? '';
      return `${dotted([...path, name])}: is missing`;
    }
    case 'false':
      return unknownText(path, namesBeside(before, schema));
    case 'enum':
      return `${where}: found ${found}; allowed: ${valuesText(limit)}`;
    case 'type':
      return `${where}: found ${found}; allowed: ${[limit].flat().join(' or ')}`;
    case 'format':
      return `${where}: found ${found}; allowed: a ${String(limit)}`;
    case 'errors':
    case 'dependentRequired':
      return `${where}: ${unit.error}`;
    default:
      return `${where}: found ${found}; ${unit.keyword}${typeof limit === 'object' ? '' : ` ${String(limit)}`} is not met`;
  }
}

function valuesText(values: unknown): string {
  if (!Array.isArray(values)) return 'one of the values of its schema';
  const more = values.length > maxValuesShown ? `, … (${values.length} in all)` : '';
  return `${values
    .slice(0, maxValuesShown)
    .map((value) => JSON.stringify(value))
    .join(', ')}${more}`;
}

/** The names that `additionalProperties: false` leaves; the validator reports it right before the name that it refuses. */
function namesBeside(before: OutputUnit | undefined, schema: JsonSchema): readonly string[] {
  if (before?.keyword !== 'additionalProperties') return [];
  const properties = keywordAt(schema, [...pointerParts(before.keywordLocation).slice(0, -1), 'properties']);
  return isSchemaObject(properties) ? Object.keys(properties) : [];
}

/** An argument or a property that nothing declares, and the `allowed` ones beside it. */
export function unknownText(path: readonly string[], allowed: readonly string[]): string {
  const kind = path.length > 1 ? 'property' : 'argument';
  const none = path.length > 1 ? '; no property is allowed here' : '; the tool takes no arguments';
  const known = allowed.length > 0 ? `; allowed: ${allowed.join(', ')}` : none;
  return `${dotted(path)}: unknown ${kind}${didYouMean(path.at(-1) ?? '', allowed) || known}`;
}
