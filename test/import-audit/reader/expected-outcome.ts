/**
 * Determines the outcome of an operation by comparing the document with the finished tool. An input that the tool
 * cannot take makes the operation partial, and a schema rule that the tool does not enforce loosens it. Each rule is
 * tested with a value that breaks only this rule, so the form of the tool's schema does not matter.
 */
import { isObject, type Json, type JsonObject, toList, toObject } from '../json.ts';
import type { Random } from '../random.ts';
import { type Context, escapeToken, getFreeKeys, isOfType, type Trace, toPlain, type ValueMaker } from '../values.ts';
import { findHidden, findMissing } from './hidden-inputs.ts';
import { type Check, createValidator, type Schemas } from './schemas.ts';

export type Loss = {
  /** Kind of loss. `missing` and `refused` make an operation partial, `loosened` loosens it. */
  kind: 'missing' | 'refused' | 'loosened';
  /** Input and position within it. */
  at: string;
  /** Keyword of the schema, or the kind of value. */
  what: string;
  example?: Json;
};

export type Compared = {
  at: string;
  context: Context;
  /** Converted schema of the document. */
  documentSchema: JsonObject | boolean;
  /** Schema of the tool. */
  toolSchema: JsonObject | boolean;
};

const maxVariants = 6;
const maxTrials = 80;

export function findLosses(compared: Compared, schemas: Schemas, maker: ValueMaker, random: Random): Loss[] {
  const losses = new Map<string, Loss>();
  const add = (loss: Loss) => {
    const id = `${loss.kind} ${loss.at} ${loss.what}`;
    if (!losses.has(id)) losses.set(id, loss);
  };
  const documentAccepts = schemas.createCheck(compared.documentSchema);
  const { toolSchema } = compared;
  const toolAccepts = createValidator(toolSchema);
  findHidden(compared.documentSchema, toolSchema, schemas, { at: compared.at, add });
  const variants = Math.min(maxVariants, Math.max(2, countAlternatives(compared.documentSchema, schemas)));
  for (let variant = 0; variant < variants; variant++) {
    const generated = maker.make(compared.documentSchema, { random, context: compared.context, share: 1, variant });
    if (!generated) {
      if (isUntestable(compared.documentSchema, toolSchema, schemas))
        add({ kind: 'loosened', at: compared.at, what: 'pattern' });
      continue;
    }
    const value = toPlain(generated.value);
    const isWhole = findMissing(value, '', [toolSchema], { at: compared.at, add, trace: generated.trace });
    if (!isWhole) continue;
    if (!toolAccepts(value)) {
      add({ kind: 'refused', at: compared.at, what: 'a value that fits', example: value });
      continue;
    }
    tryListed(value, generated.trace, { documentAccepts, toolAccepts, at: compared.at, add }, compared.context);
    tryBroken(value, generated.trace, { documentAccepts, toolAccepts, at: compared.at, add }, compared.context);
  }
  return [...losses.values()];
}

/** Returns true for a pattern for which no value was found and that the tool does not have. */
function isUntestable(
  documentSchema: JsonObject | boolean,
  toolSchema: JsonObject | boolean,
  schemas: Schemas,
): boolean {
  const resolved = schemas.resolve(documentSchema);
  return typeof resolved === 'object' && 'pattern' in resolved && !JSON.stringify(toolSchema).includes('"pattern"');
}

/** Returns the maximum number of alternatives of a union near the root. */
function countAlternatives(schema: JsonObject | boolean, schemas: Schemas, level = 0): number {
  const resolved = schemas.resolve(schema);
  if (typeof resolved === 'boolean' || level > 4) return 1;
  const children = [
    ...toList(resolved.anyOf),
    ...toList(resolved.allOf),
    ...Object.values(toObject(resolved.properties)),
    ...('items' in resolved ? [resolved.items] : []),
  ];
  const types = Array.isArray(resolved.type) ? resolved.type.length : 1;
  return Math.max(
    types,
    toList(resolved.anyOf).length,
    ...children.map((child) => countAlternatives(child as JsonObject | boolean, schemas, level + 1)),
  );
}

export type Add = (loss: Loss) => void;

type Trial = { documentAccepts: Check; toolAccepts: Check; at: string; add: Add };

/** Tests each enum value, and null in JSON. */
function tryListed(value: Json, trace: Trace, trial: Trial, context: Compared['context']): void {
  const { documentAccepts, toolAccepts, at, add } = trial;
  for (const [pointer, facets] of trace) {
    const listed = facets.flatMap((facet) => toList(facet.enum)).slice(0, 12);
    // A schema without a type also accepts null, but no document intends that.
    const isTyped = facets.some((facet) => 'type' in facet || 'enum' in facet);
    for (const one of context === 'json' && isTyped ? [...listed, null] : listed) {
      const changed = replaceAt(value, pointer, one);
      if (documentAccepts(changed) && !toolAccepts(changed))
        add({ kind: 'refused', at: at + pointer, what: `the value ${JSON.stringify(one)}`, example: changed });
    }
  }
}

function tryBroken(
  value: Json,
  trace: Trace,
  { documentAccepts, toolAccepts, at, add }: Trial,
  context: Compared['context'],
): void {
  let trials = 0;
  for (const [pointer, facets] of trace) {
    // Patterns that ECMAScript cannot express are untestable, and no tool can enforce them.
    if (facets.some((facet) => 'x-foreign-pattern' in facet))
      add({ kind: 'loosened', at: at + pointer, what: 'pattern' });
    for (const facet of facets)
      for (const { what, make } of breakRules(facet, facets, context)) {
        if (trials >= maxTrials) return;
        const current = readAt(value, pointer);
        const broken = current === undefined ? undefined : make(current);
        if (broken === undefined) continue;
        const changed = replaceAt(value, pointer, broken);
        if (documentAccepts(changed)) continue;
        trials++;
        if (toolAccepts(changed)) add({ kind: 'loosened', at: at + pointer, what, example: broken });
      }
  }
}

type Break = { what: string; make(current: Json): Json | undefined };

const wrongValues: Json[] = ['zz-other', 987.5, true, { zz: 1 }, ['zz']];

/** Returns changes that break one keyword of a schema each. */
function breakRules(facet: JsonObject, all: readonly JsonObject[], context: Compared['context']): Break[] {
  const breaks: Break[] = [];
  const on = (keyword: string, make: (current: Json) => Json | undefined) => {
    if (facet[keyword] !== undefined) breaks.push({ what: keyword, make });
  };
  const size = (keyword: string) => Number(facet[keyword]);
  const isString = (current: Json): current is string => typeof current === 'string';
  const isNumber = (current: Json): current is number => typeof current === 'number';
  on('type', () => {
    const types = (Array.isArray(facet.type) ? facet.type : [facet.type]).map(String);
    return wrongValues.find((other) => !types.some((type) => isOfType(other, type)));
  });
  on('enum', (current) => (isNumber(current) ? 987_654 : 'zz-not-listed'));
  on('const', (current) => (isNumber(current) ? 987_654 : 'zz-not-listed'));
  on('minLength', (current) =>
    isString(current) && size('minLength') > 0 ? current.slice(0, size('minLength') - 1) : undefined,
  );
  on('maxLength', (current) =>
    isString(current) && size('maxLength') < 20_000 ? current.padEnd(size('maxLength') + 1, 'x') : undefined,
  );
  on('pattern', (current) => (isString(current) ? makeMismatch(String(facet.pattern), all) : undefined));
  on('minimum', (current) => (isNumber(current) ? size('minimum') - 1 : undefined));
  on('maximum', (current) => (isNumber(current) ? size('maximum') + 1 : undefined));
  on('exclusiveMinimum', (current) => (isNumber(current) ? size('exclusiveMinimum') : undefined));
  on('exclusiveMaximum', (current) => (isNumber(current) ? size('exclusiveMaximum') : undefined));
  on('multipleOf', (current) => {
    if (!isNumber(current)) return undefined;
    const step = size('multipleOf');
    return step > 1 ? current + 1 : current + step / 2;
  });
  on('minItems', (current) =>
    Array.isArray(current) && size('minItems') > 0 ? current.slice(0, size('minItems') - 1) : undefined,
  );
  on('maxItems', (current) =>
    Array.isArray(current) && size('maxItems') < 200 ? growList(current, size('maxItems') + 1) : undefined,
  );
  on('uniqueItems', (current) =>
    Array.isArray(current) && current.length > 0 ? [...current, current[0] as Json] : undefined,
  );
  on('minProperties', (current) =>
    isObject(current) && size('minProperties') > 0 && all.every(({ required }) => toList(required).length === 0)
      ? Object.fromEntries(Object.entries(current).slice(0, size('minProperties') - 1))
      : undefined,
  );
  on('maxProperties', (current) =>
    isObject(current) && size('maxProperties') < 50 ? growObject(current, size('maxProperties') + 1) : undefined,
  );
  for (const [name, needed] of Object.entries(toObject(facet.dependentRequired)))
    for (const other of toList(needed))
      breaks.push({
        what: 'dependentRequired',
        make: (current) => (isObject(current) && name in current ? withoutProperty(current, String(other)) : undefined),
      });
  if (isObject(facet) && context === 'json') breaks.push(...breakObjects(facet, all));
  else
    for (const name of toList(facet.required))
      breaks.push({ what: `required ${name}`, make: (current) => withoutProperty(current, String(name)) });
  return breaks;
}

/** Returns a string that breaks a pattern but satisfies the length limits. */
function makeMismatch(pattern: string, all: readonly JsonObject[]): string | undefined {
  const minimum = Math.max(0, ...all.map(({ minLength }) => Number(minLength ?? 0)));
  const maximum = Math.min(1000, ...all.map(({ maxLength }) => Number(maxLength ?? 1000)));
  const texts = ['~~ \u2603 ~~', 'Zz 9', ''].map((text) => text.slice(0, maximum).padEnd(minimum, '~'));
  return texts.find((text) => !new RegExp(pattern, 'u').test(text));
}

function breakObjects(facet: JsonObject, all: readonly JsonObject[]): Break[] {
  const breaks: Break[] = toList(facet.required).map((name) => ({
    what: `required ${name}`,
    make: (current) => withoutProperty(current, String(name)),
  }));
  const free = getFreeKeys(all);
  if (facet.additionalProperties === false)
    breaks.push({
      what: 'additionalProperties',
      make: (current) => (isObject(current) ? { ...current, zz_other: 1 } : undefined),
    });
  if (isObject(facet.additionalProperties) && free.isAllowed)
    for (const other of wrongValues.slice(0, 3))
      breaks.push({
        what: 'additionalProperties',
        make: (current) => (isObject(current) ? { ...current, zz_other: other } : undefined),
      });
  return breaks;
}

function withoutProperty(current: Json, name: string): Json | undefined {
  if (!isObject(current) || !(name in current)) return undefined;
  const { [name]: _, ...rest } = current;
  return rest;
}

const growList = (current: Json[], length: number) =>
  current.length === 0 ? undefined : Array.from({ length }, (_, at) => current[at % current.length] as Json);

function growObject(current: JsonObject, size: number): JsonObject | undefined {
  const [value] = Object.values(current);
  if (value === undefined) return undefined;
  const grown = { ...current };
  for (let at = 0; Object.keys(grown).length < size; at++) grown[`zz_${at}`] = value;
  return grown;
}

function readAt(value: Json, pointer: string): Json | undefined {
  let found: Json | undefined = value;
  for (const token of readTokens(pointer))
    found = Array.isArray(found) ? found[Number(token)] : isObject(found) ? found[token] : undefined;
  return found;
}

function replaceAt(value: Json, pointer: string, replacement: Json): Json {
  const [token, ...rest] = readTokens(pointer);
  if (token === undefined) return replacement;
  const inner = rest.map((one) => `/${escapeToken(one)}`).join('');
  if (Array.isArray(value))
    return value.map((one, at) => (String(at) === token ? replaceAt(one, inner, replacement) : one));
  return isObject(value) ? { ...value, [token]: replaceAt(value[token] as Json, inner, replacement) } : value;
}

const readTokens = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));

export function decideOutcome(losses: readonly Loss[]): 'whole' | 'loosened' | 'partial' {
  if (losses.some(({ kind }) => kind !== 'loosened')) return 'partial';
  return losses.length > 0 ? 'loosened' : 'whole';
}
