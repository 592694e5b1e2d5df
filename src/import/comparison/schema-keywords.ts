import { plainNumbers } from '../../domain/json/json.ts';
import { entriesOf, isFields, type JsonFields, listOf } from '../document/lenient.ts';

export type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null' | 'any';

const counts = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];
const bounds = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const ofType: Partial<Record<JsonType, readonly string[]>> = {
  string: ['pattern', 'minLength', 'maxLength'],
  integer: [...bounds, 'multipleOf'],
  number: [...bounds, 'multipleOf'],
  array: ['minItems', 'maxItems', 'uniqueItems', 'contains', 'prefixItems', 'unevaluatedItems'],
  object: [
    ...['minProperties', 'maxProperties', 'propertyNames', 'patternProperties'],
    ...['dependentRequired', 'dependentSchemas', 'dependencies'],
  ],
};

/** Returns the keywords that constrain values of a type, except those for types, values, properties, and items. */
export function keywordsOf(pieces: readonly JsonFields[], type: JsonType): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const names = type === 'any' ? Object.values(ofType).flat() : [...(ofType[type] ?? [])];
  for (const piece of pieces) {
    for (const name of [...names, ...(type === 'null' ? [] : ['not', 'if'])]) {
      if (!found.has(name)) set(found, name, piece);
    }
    const pattern = type === 'object' ? onlyPattern(piece) : undefined;
    if (pattern !== undefined && found.delete('patternProperties')) found.set('propertyNames', { pattern });
    // JSON Schema draft 4 uses a list here.
    if (type === 'array' && Array.isArray(piece.items)) found.set('prefixItems', piece.items);
  }
  return found;
}

/** Returns the pattern that all property names must match. */
function onlyPattern({ patternProperties, properties, additionalProperties }: JsonFields): string | undefined {
  const [first, ...others] = entriesOf(patternProperties);
  const isOnly = additionalProperties === false && entriesOf(properties).length === 0 && others.length === 0;
  return isOnly ? first?.[0] : undefined;
}

function set(found: Map<string, unknown>, name: string, piece: JsonFields): void {
  const value = plainNumbers(piece[name]);
  if (value === undefined || value === false) return;
  if (counts.includes(name)) {
    if (Number.isSafeInteger(value) && Number(value) >= (name.startsWith('min') ? 1 : 0)) found.set(name, value);
  } else if (bounds.includes(name)) setBound(found, name, piece);
  else if (name === 'if') {
    if (piece.then !== undefined || piece.else !== undefined) found.set(name, value);
  } else if (
    name === 'pattern' ? typeof value === 'string' : isFields(value) || listOf(value).length > 0 || isPlain(name)
  )
    found.set(name, value);
}

function isPlain(name: string): boolean {
  return name === 'uniqueItems' || name === 'multipleOf';
}

/**
 * Sets a numeric limit. OpenAPI 3.0 and Swagger 2 write `exclusiveMinimum` as a flag next to `minimum`. Numbers are
 * limited to safe integers in any case.
 */
function setBound(found: Map<string, unknown>, name: string, piece: JsonFields): void {
  const value = plainNumbers(piece[name]);
  if (typeof value !== 'number' || Math.abs(value) > Number.MAX_SAFE_INTEGER) return;
  const exclusive = name.replace(/^m/, 'exclusiveM');
  found.set(piece[exclusive] === true ? exclusive : name, value);
}

/** Compares a keyword of a tool with the same keyword of the description. */
export function relationOf(name: string, described: unknown, offered: unknown): 'same' | 'wider' | 'narrower' {
  if (described === undefined) return offered === undefined ? 'same' : 'narrower';
  if (offered === undefined) return 'wider';
  if (name === 'pattern') return described === offered || !isPattern(String(described)) ? 'same' : 'wider';
  if (JSON.stringify(described) === JSON.stringify(offered)) return 'same';
  if (typeof described !== 'number' || typeof offered !== 'number') return 'wider';
  const isLower = /^(?:min|exclusiveMin)/.test(name);
  return offered > described === isLower ? 'narrower' : 'wider';
}

/** Returns true for a pattern that JavaScript supports. Patterns in another dialect have to be translated. */
function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u');
    return true;
  } catch {
    return false;
  }
}
