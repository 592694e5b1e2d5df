import type { Problem } from '../../errors.ts';
import { didYouMean, type Guesses } from '../problems/did-you-mean.ts';
import { shown } from '../problems/problems.ts';

type Schema = { readonly [keyword: string]: unknown };

/** Keywords by which a property may be declared elsewhere. */
const elsewhere = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties'];
const deepest = 32;

/**
 * Names in `required` that no property has, so that no call would ever be valid or the value would be sent nowhere. At
 * the root every argument must be a property; an object inside it may have others, unless it says that it has none.
 */
export function unknownRequired(schema: Schema, guesses: Guesses, path = '', depth = 0): Problem[] {
  const properties = objectOf(schema.properties);
  const names = Object.keys(properties);
  const below = (name: string) => (path ? `${path}.${name}` : name);
  const isClosed = depth === 0 || schema.additionalProperties === false;
  const isWhole = isClosed && !elsewhere.some((keyword) => Object.hasOwn(schema, keyword));
  const required = isWhole && Array.isArray(schema.required) ? schema.required : [];
  const problems = required.flatMap((name, index): Problem[] => {
    if (typeof name !== 'string' || Object.hasOwn(properties, name)) return [];
    const advice = didYouMean(name, names, guesses) || '; declare it in properties, or leave it out';
    return [{ path: below(`required[${index}]`), message: `${shown(name)} names no property${advice}` }];
  });
  if (depth > deepest) return problems;
  const inner = Object.entries(properties).flatMap(([name, property]) =>
    unknownRequired(objectOf(property), guesses, below(`properties.${name}`), depth + 1),
  );
  const ofItems =
    schema.items === undefined ? [] : unknownRequired(objectOf(schema.items), guesses, below('items'), depth + 1);
  return [...problems, ...inner, ...ofItems];
}

function objectOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}
