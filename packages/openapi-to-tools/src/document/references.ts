import { getField, isFields, type JsonFields, toEntries, toList, toText } from './lenient.ts';

/** Maximum number of references that lead from one to the next. */
const maxHops = 50;
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
  #remainingCount: number;
  #isResolvingPath = false;

  /** `maxFollowed` limits the number of followed values, because few references can expand to exponentially many values. */
  constructor(root: unknown, finder = new SchemaFinder(root), maxFollowed = Number.POSITIVE_INFINITY) {
    this.#root = root;
    this.#finder = finder;
    this.#remainingCount = maxFollowed;
  }

  get isExhausted(): boolean {
    return this.#remainingCount <= 0;
  }

  /** Returns the target of a reference, or any other value itself. Fields next to `$ref` override the target's fields. */
  follow(value: unknown): Resolved {
    const references: string[] = [];
    let current = value;
    this.#remainingCount--;
    while (isFields(current) && typeof current.$ref === 'string' && Object.hasOwn(current, '$ref')) {
      const { $ref } = current;
      if (!$ref.startsWith('#')) {
        return { value: undefined, references, problem: `refers to ${quoteShort($ref)}, ${notFetched}` };
      }
      if (references.includes($ref) || references.length >= maxHops) {
        return { value: undefined, references, problem: `${quoteShort($ref)} refers to itself` };
      }
      references.push($ref);
      const target = this.#resolve($ref);
      if (target === undefined) {
        return { value: undefined, references, problem: `refers to ${quoteShort($ref)}, which is missing` };
      }
      current = addSiblings(target, current);
    }
    return { value: current, references, problem: undefined };
  }

  /**
   * Returns the schemas that a schema with a discriminator stands for without listing them in `oneOf`: the schemas in
   * its mapping, or else the schemas derived from it (OpenAPI 3.1, 4.8.25.4). `reference` is the schema's own
   * reference.
   */
  getAlternatives(schema: JsonFields, reference: string | undefined): string[] {
    if (schema.discriminator === undefined || schema.oneOf !== undefined || schema.anyOf !== undefined) return [];
    const mapped = toEntries(getField(schema.discriminator, 'mapping')).flatMap(([, target]) =>
      typeof target === 'string' ? [toReference(target)] : [],
    );
    return [...new Set(mapped.length > 0 || reference === undefined ? mapped : this.#finder.getDerived(reference))];
  }

  #resolve(reference: string): unknown {
    if (reference === '#') return this.#root;
    if (!reference.startsWith('#/')) return this.#finder.find(decode(reference.slice(1)));
    let value = this.#root;
    for (const step of reference.slice(2).split('/')) {
      const name = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
      // Descriptions in several files use references where OpenAPI requires the value, such as in components.schemas.
      if (isFields(value) && typeof value.$ref === 'string' && !Object.hasOwn(value, name))
        value = this.#resolveOnPath(value);
      value = Array.isArray(value) && /^\d+$/.test(name) ? value[Number(name)] : getField(value, name);
    }
    return value;
  }

  /** Follows a reference inside the path of another reference. Does not recurse, so references cannot form a cycle. */
  #resolveOnPath(value: unknown): unknown {
    if (this.#isResolvingPath) return undefined;
    this.#isResolvingPath = true;
    const { value: resolved } = this.follow(value);
    this.#isResolvingPath = false;
    return resolved;
  }
}

/**
 * Finds schemas of a document by `$anchor` (JSON Schema 2020-12, 8.2.2), and schemas derived from another one. The
 * document is indexed once, on first use.
 */
export class SchemaFinder {
  readonly #root: unknown;
  #anchors: Map<string, unknown> | undefined;
  #derived: Map<string, string[]> | undefined;

  constructor(root: unknown) {
    this.#root = root;
  }

  find(name: string): unknown {
    this.#anchors ??= findAnchors(this.#root);
    return this.#anchors.get(name);
  }

  /** Returns references to the schemas that have a reference in `allOf`. */
  getDerived(reference: string): readonly string[] {
    this.#derived ??= findDerived(this.#root);
    return this.#derived.get(reference) ?? [];
  }
}

function toReference(target: string): string {
  return target.includes('#') ? target : `#/components/schemas/${target}`;
}

/** Returns the property name of a discriminator. In Swagger 2, the discriminator itself is the name. */
export function getDiscriminatorName({ discriminator }: JsonFields): string {
  return toText(discriminator) || toText(getField(discriminator, 'propertyName'));
}

/** Returns the discriminator values of an alternative: those that map to it, or else the name of its schema. */
export function getDiscriminatorValues({ discriminator }: JsonFields, alternative: unknown): string[] {
  const reference = getField(alternative, '$ref');
  if (discriminator === undefined || typeof reference !== 'string') return [];
  const mapped = toEntries(getField(discriminator, 'mapping')).filter(
    ([, target]) => toReference(toText(target)) === reference,
  );
  return mapped.length > 0 ? mapped.map(([value]) => value) : [decode(reference.split('/').at(-1) ?? '')];
}

/** Returns references to the derived schemas, by the reference in their `allOf`. */
function findDerived(root: unknown): Map<string, string[]> {
  const derived = new Map<string, string[]>();
  const lists = [
    ['#/components/schemas/', getField(getField(root, 'components'), 'schemas')],
    ['#/definitions/', getField(root, 'definitions')],
  ] as const;
  for (const [prefix, schemas] of lists) {
    for (const [name, schema] of toEntries(schemas)) {
      const ownReference = prefix + name.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('%', '%25');
      for (const parent of toList(getField(schema, 'allOf'))) {
        const reference = getField(parent, '$ref');
        if (typeof reference !== 'string') continue;
        const siblings = derived.get(reference);
        if (siblings) siblings.push(ownReference);
        else derived.set(reference, [ownReference]);
      }
    }
  }
  return derived;
}

function findAnchors(root: unknown): Map<string, unknown> {
  const anchors = new Map<string, unknown>();
  // A value shared by YAML aliases is visited once.
  const visited = new Set<unknown>();
  const queue = [root];
  while (queue.length > 0) {
    const value = queue.pop();
    if (typeof value !== 'object' || value === null || visited.has(value)) continue;
    visited.add(value);
    for (const keyword of ['$anchor', '$dynamicAnchor']) {
      const name = getField(value, keyword);
      if (typeof name === 'string' && !anchors.has(name)) anchors.set(name, value);
    }
    for (const inner of Object.values(value)) queue.push(inner);
  }
  return anchors;
}

function addSiblings(target: unknown, source: JsonFields): unknown {
  if (!isFields(target) || Object.keys(source).length === 1) return target;
  const { $ref: _, ...siblings } = source;
  return { ...target, ...siblings };
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    // A percent sign that encodes nothing is kept as is.
    return step;
  }
}

function quoteShort(reference: string): string {
  return JSON.stringify(reference.length > 100 ? `${reference.slice(0, 100)}…` : reference);
}
