import { asText, entriesOf, field, isFields, type JsonFields, listOf } from './lenient.ts';

const mostHops = 50;
/** Ending of the problem message for a reference to another document. */
export const notFetched = 'which is not fetched';

/** Resolved value, and the references that were followed to reach it. */
export type Resolved = { value: unknown; references: readonly string[]; problem: string | undefined };

/**
 * Follows references within a document. Other documents are never fetched, because their address could be any address
 * that the service can reach.
 */
export class References {
  readonly #root: unknown;
  readonly #finder: SchemaFinder;
  #left: number;
  #isBetween = false;

  /** `maxFollowed` limits the number of followed values, because few references can expand to exponentially many values. */
  constructor(root: unknown, finder = new SchemaFinder(root), most = Number.POSITIVE_INFINITY) {
    this.#root = root;
    this.#finder = finder;
    this.#left = most;
  }

  get isExhausted(): boolean {
    return this.#left <= 0;
  }

  /** Returns the value itself if it is not a reference. Fields next to `$ref` override those of its target. */
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
   * Returns the schemas that a schema with a discriminator stands for without listing them in `oneOf`: the schemas in
   * its mapping, or else the schemas derived from it (OpenAPI 3.1, 4.8.25.4). `reference` is the schema's own
   * reference.
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
      // Descriptions in several files use references where OpenAPI requires the value, such as in components.schemas.
      if (isFields(value) && typeof value.$ref === 'string' && !Object.hasOwn(value, name))
        value = this.#between(value);
      value = Array.isArray(value) && /^\d+$/.test(name) ? value[Number(name)] : field(value, name);
    }
    return value;
  }

  /** Follows a reference on the path of another one. Does not recurse, so references cannot form a cycle. */
  #between(value: unknown): unknown {
    if (this.#isBetween) return undefined;
    this.#isBetween = true;
    const { value: found } = this.follow(value);
    this.#isBetween = false;
    return found;
  }
}

/**
 * Finds schemas of a document by `$anchor` (JSON Schema 2020-12, 8.2.2), and schemas derived from another one. The
 * document is indexed once, on first use.
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

  /** Returns references to the schemas that have the given reference in `allOf`. */
  madeOf(reference: string): readonly string[] {
    this.#made ??= madeIn(this.#root);
    return this.#made.get(reference) ?? [];
  }
}

function mappedReference(target: string): string {
  return target.includes('#') ? target : `#/components/schemas/${target}`;
}

/** Returns the property name of a discriminator. In Swagger 2, the discriminator itself is the name. */
export function discriminatorOf({ discriminator }: JsonFields): string {
  return asText(discriminator) || asText(field(discriminator, 'propertyName'));
}

/** Returns the discriminator values that stand for an alternative: the values in the mapping, or else its name. */
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
  // A value shared by YAML aliases is visited once.
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
    // A percent sign that encodes nothing is kept as is.
    return step;
  }
}

function short(reference: string): string {
  return JSON.stringify(reference.length > 100 ? `${reference.slice(0, 100)}…` : reference);
}
