import { entriesOf, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { References } from '../document/references.ts';

/** A schema without references and `allOf` at its top, the references that were followed, and what was lost. */
export type Flat = { schema: JsonFields; trail: readonly string[]; lost: string[] };

const deepestAllOf = 20;

/**
 * Follows a schema's references and joins its `allOf`. `trail` are the references that surround it; one that leads back
 * gives an empty schema and the loss `recursion`.
 */
export function flatSchema(raw: unknown, trail: readonly string[], references: References, depth = 0): Flat {
  if (references.isExhausted) return { schema: {}, trail, lost: ['references of more than 20,000 schemas'] };
  const { value, references: followed, problem } = references.follow(raw);
  if (problem !== undefined) return { schema: {}, trail, lost: ['a reference that leads nowhere'] };
  if (!isFields(value)) return { schema: {}, trail, lost: [] };
  if (followed.some((reference) => trail.includes(reference)) || depth > deepestAllOf) {
    // A kind is made of the schema that surrounds it here.
    const isKind = depth > 0 && value.discriminator !== undefined;
    return { schema: descriptionOf(value), trail, lost: isKind ? [] : ['recursion'] };
  }
  const inner = followed.length > 0 ? [...trail, ...followed] : trail;
  const parts = listOf(value.allOf);
  if (parts.length === 0) return { schema: withKinds(value, followed, references, depth), trail: inner, lost: [] };
  const { allOf: _, ...own } = value;
  return parts.reduce<Flat>(
    (sum, part) => {
      const next = flatSchema(part, inner, references, depth + 1);
      const lost = [...sum.lost, ...next.lost];
      return { schema: both(sum.schema, next.schema, lost), trail: [...new Set([...sum.trail, ...next.trail])], lost };
    },
    { schema: withKinds(own, followed, references, depth), trail: inner, lost: [] },
  );
}

/** A schema with a discriminator also takes what the schemas have that it stands for. */
function withKinds(schema: JsonFields, followed: readonly string[], references: References, depth: number): JsonFields {
  const own = followed.at(-1);
  const kinds = depth > 0 ? [] : references.kindsOf(schema, own);
  if (kinds.length === 0) return schema;
  // It may be one of its kinds itself.
  return { ...schema, oneOf: kinds.map(($ref) => ($ref === own ? { type: 'object' } : { $ref })) };
}

function descriptionOf({ description, type }: JsonFields): JsonFields {
  return { ...(description !== undefined && { description }), ...(type !== undefined && { type }) };
}

/** A schema that both allow. What only one of them says is kept, and of two lists of alternatives the first. */
function both(first: JsonFields, second: JsonFields, lost: string[]): JsonFields {
  const properties = mergedProperties(first.properties, second.properties);
  const required = [...new Set([...listOf(first.required), ...listOf(second.required)])];
  for (const keyword of ['oneOf', 'anyOf', 'enum']) {
    if (first[keyword] !== undefined && second[keyword] !== undefined) lost.push(`a second ${keyword} inside allOf`);
  }
  // A part that is closed would forbid the properties of the others.
  const { additionalProperties: _first, ...rest } = { ...second, ...first };
  const open = [first, second].map((part) => part.additionalProperties).find(isFields);
  return {
    ...rest,
    ...(properties && { properties }),
    ...(required.length > 0 && { required }),
    ...(open && { additionalProperties: open }),
  };
}

function mergedProperties(first: unknown, second: unknown): JsonFields | undefined {
  if (!isFields(first) && !isFields(second)) return undefined;
  const merged = new Map(entriesOf(first));
  for (const [name, value] of entriesOf(second)) {
    const before = merged.get(name);
    merged.set(name, before === undefined ? value : { allOf: [before, value] });
  }
  return Object.fromEntries(merged);
}
