import { getField } from '../document/lenient.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import { compareKeyword } from './schema-keywords.ts';
import type { SchemaReader, Variant } from './schema-variants.ts';

/** Difference between a description and a tool: `partial` if the tool allows less, `loosened` if it allows more. */
export type Loss = {
  kind: 'partial' | 'loosened';
  note: string;
  /** Field that the note is about. */
  field?: string;
};

/** Note for fields that only the description of their object names. */
export const namedFieldsNote = 'fields that are only named';
/** Note for fields that can be sent but that an agent does not see. */
export const notListedNote = 'fields that are not listed';
const maxValues = 100;
/** Maximum number of schemas that are compared for one tool. */
const maxSteps = 20_000;

/** Location of a schema: its name in notes, its level below an argument, and the references that led to it. */
export type SchemaLocation = {
  name: string;
  depth: number;
  trail: readonly string[];
  /** Set if this value, or each field inside it, is sent as text, which has no null. */
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
  #remainingSteps = maxSteps;

  constructor(described: SchemaReader, offered: SchemaReader) {
    this.#described = described;
    this.#offered = offered;
  }

  compare(described: unknown, offered: unknown, location: SchemaLocation): Loss[] {
    if (--this.#remainingSteps < 0) return [loosened('a schema of more than 20,000 parts')];
    const describedVariants = this.#described.toVariants(described, location.trail);
    const offeredVariants = this.#offered.toVariants(offered, []);
    const losses = location.text === 'value' ? [] : compareNull(describedVariants, offeredVariants, location);
    const isValue = ({ type }: Variant) => type !== 'null';
    const isBytes = getField(offered, 'content') === 'base64';
    const comparable = describedVariants
      .filter(isValue)
      .map((variant) => (isBytes ? removeConstraints(variant) : variant));
    return [...losses, ...this.#match(comparable, offeredVariants.filter(isValue), location)];
  }

  /** Returns true if a described schema allows neither lists nor objects. */
  isScalar(described: unknown): boolean {
    return this.#described.toVariants(described, []).every(({ type }) => !['array', 'object', 'any'].includes(type));
  }

  /** Matches each described variant with the tool variant that loses the least. */
  #match(describedVariants: readonly Variant[], offeredVariants: readonly Variant[], location: SchemaLocation): Loss[] {
    const unreadable = describedVariants.flatMap((described) => described.unreadableReason ?? []);
    if (unreadable.length > 0) return unreadable.map(loosened);
    const losses: Loss[] = [];
    const describedByOffered = new Map<Variant, Variant[]>();
    for (const [index, described] of describedVariants.entries()) {
      const candidates = offeredVariants.filter(({ type }) => isCompatible(type, described.type));
      const ordered = candidates.toSorted(
        (a, b) => getDistance(offeredVariants, a, index) - getDistance(offeredVariants, b, index),
      );
      let best: { variant: Variant; losses: Loss[] } | undefined;
      for (const variant of ordered) {
        const variantLosses = this.#compareVariant(described, variant, location);
        if (best === undefined || getWeight(variantLosses) < getWeight(best.losses))
          best = { variant, losses: variantLosses };
        if (variantLosses.length === 0) break;
      }
      if (!best) losses.push(partial(`${formatType(described)} as ${formatName(location)}`));
      else {
        losses.push(...best.losses);
        describedByOffered.set(best.variant, [...(describedByOffered.get(best.variant) ?? []), described]);
      }
    }
    const isUnused = offeredVariants.some((variant) => !describedByOffered.has(variant) && variant.type !== 'any');
    if (isUnused || describedByOffered.values().some(areMerged))
      losses.push(loosened(`alternatives of ${formatName(location)}`));
    return losses;
  }

  #compareVariant(described: Variant, offered: Variant, location: SchemaLocation): Loss[] {
    if (offered.type === 'any' && described.type !== 'any') return [loosened(createHiddenNote(described, location))];
    const losses = [...compareTypes(described, offered, location), ...compareValues(described, offered, location)];
    for (const name of new Set([...described.keywords.keys(), ...offered.keywords.keys()])) {
      const describedValue = described.keywords.get(name);
      // A list of required names also implies a minimum number of properties.
      const isImplied = name === 'minProperties' && Number(describedValue) <= described.required.size;
      const relation = isImplied ? 'same' : compareKeyword(name, describedValue, offered.keywords.get(name));
      if (relation === 'wider') losses.push(loosened(name));
      if (relation === 'narrower') losses.push(partial(`${name} of ${formatName(location)}`));
    }
    if (described.type === 'object') losses.push(...this.#compareObject(described, offered, location));
    if (described.type === 'array') losses.push(...this.#compareItems(described, offered, location));
    return losses;
  }

  #compareItems(described: Variant, offered: Variant, location: SchemaLocation): Loss[] {
    const isHidden = offered.items === undefined || Object.keys(offered.items as object).length === 0;
    const inner = this.#described.toVariants(described.items ?? {}, described.trail);
    if (isHidden && inner.some(({ type }) => type === 'object' || type === 'array'))
      return [
        loosened(inner.some(({ isRecursive }) => isRecursive) ? 'recursion' : createHiddenNote(described, location)),
      ];
    const itemLocation = { name: `${location.name}[]`, depth: location.depth + 1, trail: described.trail };
    return this.compare(described.items ?? {}, offered.items ?? {}, itemLocation);
  }

  #compareObject(described: Variant, offered: Variant, location: SchemaLocation): Loss[] {
    const names = [...described.properties].filter(([, schema]) => !this.#described.isReadOnly(schema));
    const readOnlyNames = new Set(described.properties.keys()).difference(new Set(names.map(([name]) => name)));
    const required = described.required.difference(readOnlyNames);
    const schemas = new Map<string, unknown>([
      ...[...required].map((name) => [name, undefined] as const),
      ...described.conditional,
    ]);
    for (const [name, schema] of names) schemas.set(name, schema);
    const missing = [...schemas.keys()].filter(
      (name) => !offered.properties.has(name) && !location.credential?.has(name),
    );
    const isNamed = missing.every((name) => offered.description.includes(name));
    const isVisible = offered.properties.size > 0 || offered.isClosed || names.length === 0;
    if (!isVisible && !isNamed && (location.depth > 0 || described.isRecursive))
      return [loosened(createHiddenNote(described, location))];
    const losses: Loss[] = [];
    for (const name of missing)
      losses.push(createMissingLoss({ name, offered, isRequired: required.has(name) }, location));
    for (const [name, schema] of schemas) {
      if (!offered.properties.has(name) || schema === undefined) continue;
      const kinds = described.kinds.get(name);
      const text = location.text === 'fields' ? 'value' : undefined;
      const propertyLocation = {
        name: toNestedName(location, name),
        depth: location.depth + 1,
        trail: described.trail,
        kinds,
        text,
      } as const;
      losses.push(...this.compare(schema, offered.properties.get(name), propertyLocation));
    }
    for (const name of required)
      if (!offered.required.has(name) && offered.properties.has(name)) losses.push(loosened('required'));
    for (const name of offered.required)
      if (!required.has(name) && !described.kinds.has(name))
        losses.push(partial(`leaving out ${quoteShort(toNestedName(location, name))}`));
    return [...losses, ...this.#compareOtherProperties(described, offered, location)];
  }

  #compareOtherProperties(described: Variant, offered: Variant, location: SchemaLocation): Loss[] {
    if (described.isClosed) return offered.isClosed ? [] : [loosened('additionalProperties')];
    if (described.additional === undefined) return [];
    if (offered.isClosed) return [partial(`other fields of ${formatName(location)}`)];
    if (offered.additional === undefined && isAny(described.additional)) return [];
    if (offered.additional === undefined || isAny(offered.additional))
      return isAny(described.additional) ? [] : [loosened('additionalProperties')];
    const otherLocation = { name: toNestedName(location, '*'), depth: location.depth + 1, trail: described.trail };
    return this.compare(described.additional === true ? {} : described.additional, offered.additional, otherLocation);
  }
}

function isCompatible(offered: Variant['type'], described: Variant['type']): boolean {
  const isNumber = (type: Variant['type']) => type === 'number' || type === 'integer';
  return offered === described || offered === 'any' || (isNumber(offered) && isNumber(described));
}

/** Returns the distance of a variant from an index. A described variant usually has the index of its tool variant. */
function getDistance(offeredVariants: readonly Variant[], variant: Variant, index: number): number {
  return Math.abs(offeredVariants.indexOf(variant) - index);
}

function getWeight(losses: readonly Loss[]): number {
  return losses.reduce((sum, { kind }) => sum + (kind === 'partial' ? 1000 : 1), 0);
}

/** Returns true if one tool variant represents objects with different fields. */
function areMerged(described: readonly Variant[]): boolean {
  const shapes = described.map(({ type, properties }) =>
    type === 'object' ? [...properties.keys()].toSorted().join() : '',
  );
  return new Set(shapes).size > 1;
}

function compareNull(
  describedVariants: readonly Variant[],
  offeredVariants: readonly Variant[],
  location: SchemaLocation,
): Loss[] {
  const hasType = (variants: readonly Variant[], ...types: Variant['type'][]) =>
    variants.some(({ type }) => types.includes(type));
  if (hasType(describedVariants, 'null') && !hasType(offeredVariants, 'null', 'any'))
    return [partial(`null as ${formatName(location)}`)];
  return hasType(offeredVariants, 'null') && !hasType(describedVariants, 'null', 'any')
    ? [loosened(`null as ${formatName(location)}`)]
    : [];
}

function compareTypes(described: Variant, offered: Variant, location: SchemaLocation): Loss[] {
  if (described.type === 'integer' && offered.type === 'number')
    return [loosened(`numbers as ${formatName(location)}`)];
  if (described.type === 'number' && offered.type === 'integer')
    return [partial(`${formatType(described)} as ${formatName(location)}`)];
  return [];
}

function compareValues({ values }: Variant, offered: Variant, { name, kinds }: SchemaLocation): Loss[] {
  if (!offered.values) {
    if (!values) return [];
    return [loosened(values.size > maxValues ? `a list of more than ${maxValues} values` : 'enum')];
  }
  // A tool may list discriminator values even if the description only declares a string.
  const allowed = values ? [...values.keys()] : kinds;
  if (!allowed) return [partial(`other values of ${formatName({ name })}`)];
  const missingValue = allowed.find((text) => !offered.values?.has(text) && kinds?.includes(text) !== false);
  if (missingValue !== undefined) return [partial(`the value ${quoteShort(missingValue)} of ${formatName({ name })}`)];
  return kinds === undefined && offered.values.size > allowed.length ? [loosened('enum')] : [];
}

type MissingField = { name: string; offered: Variant; isRequired: boolean };

function createMissingLoss({ name, offered, isRequired }: MissingField, location: SchemaLocation): Loss {
  const field = toNestedName(location, name);
  if (offered.isClosed) return partial(`the field ${quoteShort(field)}`);
  const isNamed = !isRequired && offered.description.includes(name);
  return { kind: 'loosened', note: isNamed ? namedFieldsNote : notListedNote, field };
}

function toNestedName({ name }: SchemaLocation, inner: string): string {
  return name === '' ? inner : `${name}.${inner}`;
}

/** Returns the name of a location in notes. */
function formatName({ name }: Pick<SchemaLocation, 'name'>): string {
  return name === '' ? 'the body' : quoteShort(name);
}

/** Removes constraints: rules for the text of binary data apply to the bytes, not to the text. */
function removeConstraints(variant: Variant): Variant {
  if (variant.type !== 'string' && variant.type !== 'any') return variant;
  return { ...variant, type: 'string', values: undefined, keywords: new Map() };
}

function isAny(schema: unknown): boolean {
  return typeof schema !== 'object' || schema === null || Object.keys(schema).length === 0;
}

/** Returns the note for a location where a tool hides all nested values. */
function createHiddenNote({ isRecursive, type }: Variant, { name, depth }: SchemaLocation): string {
  if (isRecursive) return 'recursion';
  return (type === 'object' || type === 'array') && depth > 0
    ? `levels below ${depth}`
    : `the schema of ${formatName({ name })}`;
}

function formatType({ type }: Variant): string {
  return type === 'any' ? 'any value' : `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
}
