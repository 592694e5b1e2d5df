import { field } from '../document/lenient.ts';
import { short } from '../tools/input-arguments.ts';
import { relationOf } from './schema-keywords.ts';
import type { SchemaReader, Variant } from './schema-variants.ts';

/** Difference between a description and a tool. `partial` values cannot be sent; `loosened` values are not rejected. */
export type Loss = {
  kind: 'partial' | 'loosened';
  note: string;
  /** Field that the note is about. */
  field?: string;
};

/** Note for fields that only the description of their object names. */
export const namedFields = 'fields that are only named';
/** Note for fields that can be sent but that an agent does not see. */
export const notListed = 'fields that are not listed';
const maxValues = 100;
/** Maximum number of schemas that are compared for one tool. */
const maxSteps = 20_000;

/** Location of a schema: its name in notes, its level below an argument, and the enclosing references. */
export type SchemaPlace = {
  name: string;
  depth: number;
  trail: readonly string[];
  /** Set if this value, or the fields inside it, are written as text, which has no null. */
  text?: 'value' | 'fields' | undefined;
  /** Names of fields that are sent as the credential. */
  credential?: ReadonlySet<string>;
  /** Values of the enclosing object's discriminator. */
  kinds?: readonly string[] | undefined;
};

const partial = (note: string): Loss => ({ kind: 'partial', note });
const loosened = (note: string): Loss => ({ kind: 'loosened', note });

/** Compares the schemas of a description with the schemas of a tool. */
export class SchemaComparison {
  readonly #described: SchemaReader;
  readonly #offered: SchemaReader;
  #left = maxSteps;

  constructor(described: SchemaReader, offered: SchemaReader) {
    this.#described = described;
    this.#offered = offered;
  }

  compare(described: unknown, offered: unknown, place: SchemaPlace): Loss[] {
    if (--this.#left < 0) return [loosened('a schema of more than 20,000 parts')];
    const wanted = this.#described.variants(described, place.trail);
    const given = this.#offered.variants(offered, []);
    const losses = place.text === 'value' ? [] : compareNull(wanted, given, place);
    const isValue = ({ type }: Variant) => type !== 'null';
    const isBytes = field(offered, 'content') === 'base64';
    const rules = wanted.filter(isValue).map((one) => (isBytes ? withoutRules(one) : one));
    return [...losses, ...this.#match(rules, given.filter(isValue), place)];
  }

  /** Returns true if a described schema allows neither lists nor objects. */
  isScalar(described: unknown): boolean {
    return this.#described.variants(described, []).every(({ type }) => !['array', 'object', 'any'].includes(type));
  }

  /** Matches each described variant with the tool variant that loses the least. */
  #match(wanted: readonly Variant[], given: readonly Variant[], place: SchemaPlace): Loss[] {
    const unreadable = wanted.flatMap((one) => one.unreadable ?? []);
    if (unreadable.length > 0) return unreadable.map(loosened);
    const losses: Loss[] = [];
    const users = new Map<Variant, Variant[]>();
    for (const [at, one] of wanted.entries()) {
      const candidates = given.filter(({ type }) => canHold(type, one.type));
      const ordered = candidates.toSorted((a, b) => distance(given, a, at) - distance(given, b, at));
      let best: { variant: Variant; losses: Loss[] } | undefined;
      for (const variant of ordered) {
        const found = this.#compareVariant(one, variant, place);
        if (best === undefined || weight(found) < weight(best.losses)) best = { variant, losses: found };
        if (found.length === 0) break;
      }
      if (!best) losses.push(partial(`${typeText(one)} as ${nameText(place)}`));
      else {
        losses.push(...best.losses);
        users.set(best.variant, [...(users.get(best.variant) ?? []), one]);
      }
    }
    const isUnused = given.some((variant) => !users.has(variant) && variant.type !== 'any');
    if (isUnused || users.values().some(areJoined)) losses.push(loosened(`alternatives of ${nameText(place)}`));
    return losses;
  }

  #compareVariant(one: Variant, offered: Variant, place: SchemaPlace): Loss[] {
    if (offered.type === 'any' && one.type !== 'any') return [loosened(hiddenNote(one, place))];
    const losses = [...compareTypes(one, offered, place), ...compareValues(one, offered, place)];
    for (const name of new Set([...one.keywords.keys(), ...offered.keywords.keys()])) {
      const described = one.keywords.get(name);
      // A list of required names also implies a minimum number of properties.
      const isImplied = name === 'minProperties' && Number(described) <= one.required.size;
      const relation = isImplied ? 'same' : relationOf(name, described, offered.keywords.get(name));
      if (relation === 'wider') losses.push(loosened(name));
      if (relation === 'narrower') losses.push(partial(`${name} of ${nameText(place)}`));
    }
    if (one.type === 'object') losses.push(...this.#compareObject(one, offered, place));
    if (one.type === 'array') losses.push(...this.#compareItems(one, offered, place));
    return losses;
  }

  #compareItems(one: Variant, offered: Variant, place: SchemaPlace): Loss[] {
    const isHidden = offered.items === undefined || Object.keys(offered.items as object).length === 0;
    const inner = this.#described.variants(one.items ?? {}, one.trail);
    if (isHidden && inner.some(({ type }) => type === 'object' || type === 'array'))
      return [loosened(inner.some(({ isRecursive }) => isRecursive) ? 'recursion' : hiddenNote(one, place))];
    const at = { name: `${place.name}[]`, depth: place.depth + 1, trail: one.trail };
    return this.compare(one.items ?? {}, offered.items ?? {}, at);
  }

  #compareObject(one: Variant, offered: Variant, place: SchemaPlace): Loss[] {
    const names = [...one.properties].filter(([, schema]) => !this.#described.isReadOnly(schema));
    const readOnly = new Set(one.properties.keys()).difference(new Set(names.map(([name]) => name)));
    const required = one.required.difference(readOnly);
    const all = new Map<string, unknown>([
      ...[...required].map((name) => [name, undefined] as const),
      ...one.conditional,
    ]);
    for (const [name, schema] of names) all.set(name, schema);
    const missing = [...all.keys()].filter((name) => !offered.properties.has(name) && !place.credential?.has(name));
    const isNamed = missing.every((name) => offered.description.includes(name));
    const isShown = offered.properties.size > 0 || offered.isClosed || names.length === 0;
    if (!isShown && !isNamed && (place.depth > 0 || one.isRecursive)) return [loosened(hiddenNote(one, place))];
    const losses: Loss[] = [];
    for (const name of missing) losses.push(missingLoss({ name, offered, isRequired: required.has(name) }, place));
    for (const [name, schema] of all) {
      if (!offered.properties.has(name) || schema === undefined) continue;
      const kinds = one.kinds.get(name);
      const text = place.text === 'fields' ? 'value' : undefined;
      const at = { name: inside(place, name), depth: place.depth + 1, trail: one.trail, kinds, text } as const;
      losses.push(...this.compare(schema, offered.properties.get(name), at));
    }
    for (const name of required)
      if (!offered.required.has(name) && offered.properties.has(name)) losses.push(loosened('required'));
    for (const name of offered.required)
      if (!required.has(name) && !one.kinds.has(name))
        losses.push(partial(`leaving out ${short(inside(place, name))}`));
    return [...losses, ...this.#compareOthers(one, offered, place)];
  }

  #compareOthers(one: Variant, offered: Variant, place: SchemaPlace): Loss[] {
    if (one.isClosed) return offered.isClosed ? [] : [loosened('additionalProperties')];
    if (one.free === undefined) return [];
    if (offered.isClosed) return [partial(`other fields of ${nameText(place)}`)];
    if (offered.free === undefined && isAny(one.free)) return [];
    if (offered.free === undefined || isAny(offered.free))
      return isAny(one.free) ? [] : [loosened('additionalProperties')];
    const at = { name: inside(place, '*'), depth: place.depth + 1, trail: one.trail };
    return this.compare(one.free === true ? {} : one.free, offered.free, at);
  }
}

function canHold(offered: Variant['type'], described: Variant['type']): boolean {
  const isNumber = (type: Variant['type']) => type === 'number' || type === 'integer';
  return offered === described || offered === 'any' || (isNumber(offered) && isNumber(described));
}

/** A variant at the same index is usually the one that was derived from it. */
function distance(given: readonly Variant[], variant: Variant, at: number): number {
  return Math.abs(given.indexOf(variant) - at);
}

function weight(losses: readonly Loss[]): number {
  return losses.reduce((sum, { kind }) => sum + (kind === 'partial' ? 1000 : 1), 0);
}

/** Returns true if objects with different fields are shown as one object. */
function areJoined(users: readonly Variant[]): boolean {
  const shapes = users.map(({ type, properties }) =>
    type === 'object' ? [...properties.keys()].toSorted().join() : '',
  );
  return new Set(shapes).size > 1;
}

function compareNull(wanted: readonly Variant[], given: readonly Variant[], place: SchemaPlace): Loss[] {
  const has = (variants: readonly Variant[], ...types: Variant['type'][]) =>
    variants.some(({ type }) => types.includes(type));
  if (has(wanted, 'null') && !has(given, 'null', 'any')) return [partial(`null as ${nameText(place)}`)];
  return has(given, 'null') && !has(wanted, 'null', 'any') ? [loosened(`null as ${nameText(place)}`)] : [];
}

function compareTypes(one: Variant, offered: Variant, place: SchemaPlace): Loss[] {
  if (one.type === 'integer' && offered.type === 'number') return [loosened(`numbers as ${nameText(place)}`)];
  if (one.type === 'number' && offered.type === 'integer') return [partial(`${typeText(one)} as ${nameText(place)}`)];
  return [];
}

function compareValues({ values }: Variant, offered: Variant, { name, kinds }: SchemaPlace): Loss[] {
  if (!offered.values) {
    if (!values) return [];
    return [loosened(values.size > maxValues ? `a list of more than ${maxValues} values` : 'enum')];
  }
  // A tool may list discriminator values even if the description only declares a string.
  const wanted = values ? [...values.keys()] : kinds;
  if (!wanted) return [partial(`other values of ${nameText({ name })}`)];
  const gone = wanted.find((text) => !offered.values?.has(text) && kinds?.includes(text) !== false);
  if (gone !== undefined) return [partial(`the value ${short(gone)} of ${nameText({ name })}`)];
  return kinds === undefined && offered.values.size > wanted.length ? [loosened('enum')] : [];
}

type Missing = { name: string; offered: Variant; isRequired: boolean };

function missingLoss({ name, offered, isRequired }: Missing, place: SchemaPlace): Loss {
  const field = inside(place, name);
  if (offered.isClosed) return partial(`the field ${short(field)}`);
  const isNamed = !isRequired && offered.description.includes(name);
  return { kind: 'loosened', note: isNamed ? namedFields : notListed, field };
}

function inside({ name }: SchemaPlace, inner: string): string {
  return name === '' ? inner : `${name}.${inner}`;
}

/** Returns the name of a location in notes. */
function nameText({ name }: Pick<SchemaPlace, 'name'>): string {
  return name === '' ? 'the body' : short(name);
}

/** Removes constraints: rules for the text of binary data apply to the bytes, not to the text. */
function withoutRules(variant: Variant): Variant {
  if (variant.type !== 'string' && variant.type !== 'any') return variant;
  return { ...variant, type: 'string', values: undefined, keywords: new Map() };
}

function isAny(schema: unknown): boolean {
  return typeof schema !== 'object' || schema === null || Object.keys(schema).length === 0;
}

/** Returns the note for a location where a tool hides all nested values. */
function hiddenNote({ isRecursive, type }: Variant, { name, depth }: SchemaPlace): string {
  if (isRecursive) return 'recursion';
  return (type === 'object' || type === 'array') && depth > 0
    ? `levels below ${depth}`
    : `the schema of ${nameText({ name })}`;
}

function typeText({ type }: Variant): string {
  return type === 'any' ? 'any value' : `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
}
