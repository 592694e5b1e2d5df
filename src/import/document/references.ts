import { field, isFields, type JsonFields } from './lenient.ts';

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
  readonly #anchors: Anchors;
  #left: number;

  /** `most` bounds how many values are followed, because few references can lead to exponentially many. */
  constructor(root: unknown, anchors = new Anchors(root), most = Number.POSITIVE_INFINITY) {
    this.#root = root;
    this.#anchors = anchors;
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

  #at(reference: string): unknown {
    if (reference === '#') return this.#root;
    if (!reference.startsWith('#/')) return this.#anchors.find(decoded(reference.slice(1)));
    let value = this.#root;
    for (const step of reference.slice(2).split('/')) {
      const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      value = Array.isArray(value) && /^\d+$/.test(name) ? value[Number(name)] : field(value, name);
    }
    return value;
  }
}

/** The schemas that have a name of their own, by `$anchor` (JSON Schema 2020-12, 8.2.2). Looked for once, if at all. */
export class Anchors {
  readonly #root: unknown;
  #found: Map<string, unknown> | undefined;

  constructor(root: unknown) {
    this.#root = root;
  }

  find(name: string): unknown {
    this.#found ??= anchorsIn(this.#root);
    return this.#found.get(name);
  }
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
