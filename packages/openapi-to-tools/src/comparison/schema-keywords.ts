import { toPlainNumbers } from '@toolhost/json/json';
import { isFields, type JsonFields, toEntries, toList } from '../document/lenient.ts';

export type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null' | 'any';

const countKeywords = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];
const boundKeywords = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const keywordsByType: Partial<Record<JsonType, readonly string[]>> = {
  string: ['pattern', 'minLength', 'maxLength'],
  integer: [...boundKeywords, 'multipleOf'],
  number: [...boundKeywords, 'multipleOf'],
  array: ['minItems', 'maxItems', 'uniqueItems', 'contains', 'prefixItems', 'unevaluatedItems'],
  object: [
    ...['minProperties', 'maxProperties', 'propertyNames', 'patternProperties'],
    ...['dependentRequired', 'dependentSchemas', 'dependencies'],
  ],
};

/** Returns the keywords that constrain values of a type, except those for types, values, properties, and items. */
export function collectKeywords(schemas: readonly JsonFields[], type: JsonType): Map<string, unknown> {
  const keywords = new Map<string, unknown>();
  const names = type === 'any' ? Object.values(keywordsByType).flat() : [...(keywordsByType[type] ?? [])];
  for (const schema of schemas) {
    for (const name of [...names, ...(type === 'null' ? [] : ['not', 'if'])]) {
      if (!keywords.has(name)) setKeyword(keywords, name, schema);
    }
    const pattern = type === 'object' ? getOnlyPattern(schema) : undefined;
    if (pattern !== undefined && keywords.delete('patternProperties')) keywords.set('propertyNames', { pattern });
    // JSON Schema draft 4 uses a list here.
    if (type === 'array' && Array.isArray(schema.items)) keywords.set('prefixItems', schema.items);
  }
  return keywords;
}

/** Returns the pattern that all property names must match. */
function getOnlyPattern({ patternProperties, properties, additionalProperties }: JsonFields): string | undefined {
  const [firstPattern, ...otherPatterns] = toEntries(patternProperties);
  const appliesToAll =
    additionalProperties === false && toEntries(properties).length === 0 && otherPatterns.length === 0;
  return appliesToAll ? firstPattern?.[0] : undefined;
}

function setKeyword(keywords: Map<string, unknown>, name: string, schema: JsonFields): void {
  const value = toPlainNumbers(schema[name]);
  if (value === undefined || value === false) return;
  if (countKeywords.includes(name)) {
    if (Number.isSafeInteger(value) && Number(value) >= (name.startsWith('min') ? 1 : 0)) keywords.set(name, value);
  } else if (boundKeywords.includes(name)) setBound(keywords, name, schema);
  else if (name === 'if') {
    if (schema.then !== undefined || schema.else !== undefined) keywords.set(name, value);
  } else if (
    name === 'pattern'
      ? typeof value === 'string'
      : isFields(value) || toList(value).length > 0 || isScalarKeyword(name)
  )
    keywords.set(name, value);
}

function isScalarKeyword(name: string): boolean {
  return name === 'uniqueItems' || name === 'multipleOf';
}

/**
 * Sets a numeric limit. In OpenAPI 3.0 and Swagger 2, `exclusiveMinimum` is a flag next to `minimum`. A limit beyond
 * the safe integers has no effect.
 */
function setBound(keywords: Map<string, unknown>, name: string, schema: JsonFields): void {
  const value = toPlainNumbers(schema[name]);
  if (typeof value !== 'number' || Math.abs(value) > Number.MAX_SAFE_INTEGER) return;
  const exclusive = name.replace(/^m/, 'exclusiveM');
  keywords.set(schema[exclusive] === true ? exclusive : name, value);
}

/** Compares a keyword of a tool with the same keyword of the description. */
export function compareKeyword(name: string, described: unknown, offered: unknown): 'same' | 'wider' | 'narrower' {
  if (described === undefined) return offered === undefined ? 'same' : 'narrower';
  if (offered === undefined) return 'wider';
  if (name === 'pattern') return described === offered || !isPattern(String(described)) ? 'same' : 'wider';
  if (JSON.stringify(described) === JSON.stringify(offered)) return 'same';
  if (typeof described !== 'number' || typeof offered !== 'number') return 'wider';
  const isLower = /^(?:min|exclusiveMin)/.test(name);
  return offered > described === isLower ? 'narrower' : 'wider';
}

/** Returns true for a pattern that JavaScript supports. The import translates other dialects, so texts may differ. */
function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u');
    return true;
  } catch {
    return false;
  }
}
