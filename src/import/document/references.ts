import { asText, entriesOf, field, isFields, type JsonFields, listOf } from './lenient.ts';

const mostHops = 50;
/** The end of the problem of a reference to another document. */
export const notFetched = 'which is not fetched';

/** A value behind its references, and the references that led to it. */
export type Resolved = { value: unknown; references: readonly string[]; problem: string | undefined };

/**
 * Follows the references of a document into itself. Other documents are never fetched: their address could be any
 * address that the service reaches.
 */
export class References {
  readonly #root: unknown;
  readonly #finder: SchemaFinder;
  #left: number;
  #isBetween = false;

  /** `most` bounds how many values are followed, because few references can lead to exponentially many. */
  constructor(root: unknown, finder = new SchemaFinder(root), most = Number.POSITIVE_INFINITY) {
    this.#root = root;
    this.#finder = finder;
    this.#left = most;
  }

  get isExhausted(): boolean {
    return this.#left <= 0;
  }

  /** The value itself when it is no reference. JsonFields beside `$ref` overrule those of its target. */
  follow(value: unknown): Resolved {
    const references: string[] = [];
    let found = value;
    this.#left--;
    while (isFields(found) && typeof found.$ref === 'string' && Object.hasOwn(found, '$ref')) {
      const { $ref } = found;
      if (!$ref.startsWith('#')) {
        return { value: undefined, references, problem: `refers to ${short($ref)}, ${notFetched}` };
      }
      if (references.includes($ref) || references.length >= mostHops) {
        return { value: undefined, references, problem: `${short($ref)} refers to itself` };
      }
      references.push($ref);
      const target = this.#at($ref);
      if (target === undefined) {
        return { value: undefined, references, problem: `refers to ${short($ref)}, which is missing` };
      }
      found = withSiblings(target, found);
    }
    return { value: found, references, problem: undefined };
  }

  /**
   * The schemas that a schema with a discriminator stands for without naming them in `oneOf`: those of its mapping, or
   * else those that are made of it (OpenAPI 3.1, 4.8.25.4). `reference` is its own.
   */
  kindsOf(schema: JsonFields, reference: string | undefined): string[] {
    if (schema.discriminator === undefined || schema.oneOf !== undefined || schema.anyOf !== undefined) return [];
    const mapped = entriesOf(field(schema.discriminator, 'mapping')).flatMap(([, one]) =>
      typeof one === 'string' ? [mappedReference(one)] : [],
    );
    return [...new Set(mapped.length > 0 || reference === undefined ? mapped : this.#finder.madeOf(reference))];
  }

  #at(reference: string): unknown {
    if (reference === '#') return this.#root;
    if (!reference.startsWith('#/')) return this.#finder.find(decoded(reference.slice(1)));
    let value = this.#root;
    for (const step of reference.slice(2).split('/')) {
      const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      // Descriptions in several files have references where OpenAPI wants the value, such as in components.schemas.
      if (isFields(value) && typeof value.$ref === 'string' && !Object.hasOwn(value, name))
        value = this.#between(value);
      value = Array.isArray(value) && /^\d+$/.test(name) ? value[Number(name)] : field(value, name);
    }
    return value;
  }

  /** A reference on the way of another one; on its own way there is none, so that they cannot lead in a circle. */
  #between(value: unknown): unknown {
    if (this.#isBetween) return undefined;
    this.#isBetween = true;
    const { value: found } = this.follow(value);
    this.#isBetween = false;
    return found;
  }
}

/**
 * Finds schemas of a document by `$anchor` (JSON Schema 2020-12, 8.2.2), and those that are made of another one. The
 * document is searched once, when something is asked for.
 */
export class SchemaFinder {
  readonly #root: unknown;
  #found: Map<string, unknown> | undefined;
  #made: Map<string, string[]> | undefined;

  constructor(root: unknown) {
    this.#root = root;
  }

  find(name: string): unknown {
    this.#found ??= anchorsIn(this.#root);
    return this.#found.get(name);
  }

  /** References to the schemas that have a reference in `allOf`. */
  madeOf(reference: string): readonly string[] {
    this.#made ??= madeIn(this.#root);
    return this.#made.get(reference) ?? [];
  }
}

function mappedReference(target: string): string {
  return target.includes('#') ? target : `#/components/schemas/${target}`;
}

/** The name of the property of a discriminator, which is the discriminator itself in Swagger 2. */
export function discriminatorOf({ discriminator }: JsonFields): string {
  return asText(discriminator) || asText(field(discriminator, 'propertyName'));
}

/** The values of that property that stand for an alternative: those of the mapping, or else its name. */
export function kindValues({ discriminator }: JsonFields, alternative: unknown): string[] {
  const reference = field(alternative, '$ref');
  if (discriminator === undefined || typeof reference !== 'string') return [];
  const mapped = entriesOf(field(discriminator, 'mapping')).filter(
    ([, one]) => mappedReference(asText(one)) === reference,
  );
  return mapped.length > 0 ? mapped.map(([value]) => value) : [decoded(reference.split('/').at(-1) ?? '')];
}

function madeIn(root: unknown): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const lists = [
    ['#/components/schemas/', field(field(root, 'components'), 'schemas')],
    ['#/definitions/', field(root, 'definitions')],
  ] as const;
  for (const [start, schemas] of lists) {
    for (const [name, schema] of entriesOf(schemas)) {
      const own = start + name.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('%', '%25');
      for (const part of listOf(field(schema, 'allOf'))) {
        const reference = field(part, '$ref');
        if (typeof reference !== 'string') continue;
        const others = found.get(reference);
        if (others) others.push(own);
        else found.set(reference, [own]);
      }
    }
  }
  return found;
}

function anchorsIn(root: unknown): Map<string, unknown> {
  const found = new Map<string, unknown>();
  // A value that YAML aliases share is looked at once.
  const seen = new Set<unknown>();
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const name = field(value, keyword);
      if (typeof name === 'string' && !found.has(name)) found.set(name, value);
    }
    for (const inner of Object.values(value)) waiting.push(inner);
  }
  return found;
}

function withSiblings(target: unknown, source: JsonFields): unknown {
  if (!isFields(target) || Object.keys(source).length === 1) return target;
  const { $ref: _, ...beside } = source;
  return { ...target, ...beside };
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    // A percent sign that encodes nothing stands for itself.
    return step;
  }
}

function short(reference: string): string {
  return JSON.stringify(reference.length > 100 ? `${reference.slice(0, 100)}…` : reference);
}
