import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { type ConfigFields, isDocument } from './server-files.ts';

/** A value as the file means it, with defaults, and as it should be. */
type Change = { before: unknown; after: unknown };

/**
 * Changes a YAML document so that it means `after`. Whatever means the same stays as it is written, with its comments;
 * fields that are absent because they are the default stay absent.
 */
export function mergeYaml(document: Document, before: ConfigFields, after: ConfigFields): void {
  resolveAliases(document);
  document.contents = merged(document, document.contents, { before, after }) as typeof document.contents;
}

/** Writes out what aliases refer to, because a change of the anchored value would reach other fields. */
function resolveAliases(document: Document): void {
  let hasAlias = false;
  visit(document, {
    Alias(_key, alias) {
      hasAlias = true;
      return alias.resolve(document)?.clone() as Node | undefined;
    },
  });
  if (!hasAlias) return;
  visit(document, {
    Node(_key, node) {
      delete (node as { anchor?: string }).anchor;
    },
  });
}

function merged(document: Document, node: unknown, { before, after }: Change): unknown {
  if (JSON.stringify(before) === JSON.stringify(after)) return node;
  if (isMap(node) && isDocument(before) && isDocument(after)) return mergedMap(document, node, { before, after });
  if (isSeq(node) && Array.isArray(before) && Array.isArray(after))
    return mergedList(document, node, { before, after });
  if (isScalar(node) && !isCollection(document.createNode(after))) {
    // Blanks in the style of a block would be read as nothing.
    const isBlank = typeof after === 'string' && after.trim() === '';
    if (typeof node.value !== typeof after || isBlank) delete node.type;
    node.value = after;
    return node;
  }
  return withComments(document.createNode(after), node);
}

function withComments(made: Node, old: unknown): Node {
  const { commentBefore, comment } = (old ?? {}) as Node;
  if (commentBefore) made.commentBefore = commentBefore;
  if (comment) made.comment = comment;
  return made;
}

function mergedMap(
  document: Document,
  map: YAMLMap,
  { before, after }: { before: ConfigFields; after: ConfigFields },
): YAMLMap {
  const names = Object.keys(after);
  const wanted = new Set(names);
  map.items = map.items.filter((pair) => wanted.has(keyOf(pair)));
  const pairs = new Map(map.items.map((pair) => [keyOf(pair), pair]));
  for (const [index, name] of names.entries()) {
    const pair = pairs.get(name);
    if (pair) {
      pair.value = merged(document, pair.value, { before: before[name], after: after[name] });
    } else if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) {
      // Beside its predecessor, so that the order of arguments is kept.
      const previous = names.slice(0, index).findLast((known) => pairs.has(known));
      const location = previous === undefined ? 0 : map.items.findIndex((known) => keyOf(known) === previous) + 1;
      const made = document.createPair(name, after[name]) as Pair;
      pairs.set(name, made);
      map.items.splice(location, 0, made);
    }
  }
  const common = Object.keys(before).filter((name) => wanted.has(name));
  const isMoved = names.filter((name) => Object.hasOwn(before, name)).some((name, index) => name !== common[index]);
  if (isMoved) map.items.sort((a, b) => names.indexOf(keyOf(a)) - names.indexOf(keyOf(b)));
  return map;
}

/** Tools are found by name; the entries of other lists by their number. */
function mergedList(
  document: Document,
  list: YAMLSeq,
  { before, after }: { before: unknown[]; after: unknown[] },
): YAMLSeq {
  const known = before.map((item, index) => nameIn(item) ?? index);
  list.items = after.map((item, index) => {
    const at = known.indexOf(nameIn(item) ?? index);
    const node = at < 0 ? undefined : list.items[at];
    return node === undefined ? document.createNode(item) : merged(document, node, { before: before[at], after: item });
  });
  return list;
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function nameIn(item: unknown): string | undefined {
  return isDocument(item) && typeof item.name === 'string' ? item.name : undefined;
}
