import { parseDotPath } from '../json/dot-path.ts';
import type { FieldUse } from './field-use.ts';

/** Reasons why a field is probably of no use to a model. */
export const uselessReasons = ['empty', 'constant', 'link', 'id', 'picture'] as const;
export type UselessReason = (typeof uselessReasons)[number];

/** Minimum number of occurrences before a field's values are meaningful. */
const enough = { empty: 2, constant: 5 };

/** Matches names of links for people, which an agent may have to pass on. */
const linksForPeople =
  /^(html|web|public|share|short|app|canonical|receipt|(browser_)?download|hosted_\w+|checkout|payment)_?url$|^permalink$|^webViewLink$/i;
const linkNames = /(^|_)(url|uri|href|link)s?$|(Url|URL|Uri|URI|Href|Link)s?$/;
const linkObjects = /^_?links?$|^_embedded_links$|^hypermedia$/i;
const ids = /^(node_id|gravatar_id|etag|_etag|_rev|__typename|__v|_type|graphql_id|cursor_id)$/i;
const pictures = /avatar|gravatar|thumbnail|favicon|(^|_)icons?(_|$)|^image_(\d+|original|url)$|profile_image/i;

/**
 * Returns the reason why a field is probably of no use, judged by its name and its values. `around` is the field that
 * contains it.
 */
export function uselessReason(use: FieldUse, around: FieldUse): UselessReason | undefined {
  const { name, times, empty, urls, always, objects, fields } = use;
  if (empty === times && times >= enough.empty) return 'empty';
  if (ids.test(name)) return 'id';
  if (pictures.test(name)) return 'picture';
  const areUrls = urls > 0 && urls + empty === times;
  if (areUrls && linkNames.test(name) && !isForPeople(name, around)) return 'link';
  if (linkObjects.test(name) && objects > 0 && areLinks(fields)) return 'link';
  return always !== undefined && times >= enough.constant && objects === 0 ? 'constant' : undefined;
}

/** Returns true for links for people. A field named only `url` is one if no other field is. */
function isForPeople(name: string, around: FieldUse): boolean {
  if (linksForPeople.test(name)) return true;
  return /^(url|link)$/i.test(name) && !around.fields.some((field) => linksForPeople.test(field.name));
}

function areLinks(fields: readonly FieldUse[]): boolean {
  return fields.some(({ urls, fields: inner }) => urls > 0 || areLinks(inner));
}

/**
 * Proposes the fields to keep of the measured responses: those that are probably useful, at most `most`. Undefined if
 * nothing would be removed, or nothing kept.
 */
export function proposeFields(answers: FieldUse, most: number): string[] | undefined {
  if (answers.isPartial) return undefined;
  const parts = answers.fields.map((field) => partOf(field, '', answers));
  if (parts.every(({ isWhole }) => isWhole)) return undefined;
  const kept = parts.flatMap((part) => (part.isDropped ? [] : [part]));
  const choices = pathsOf(kept).length > most ? choicesIn(kept) : [];
  for (const choice of choices) {
    if (pathsOf(kept).length <= most) break;
    choice.isWhole = true;
  }
  const paths = pathsOf(kept);
  return paths.length === 0 || paths.length > most ? undefined : paths;
}

/** A field, and the part of it that is kept. */
type Part = { path: string; use: FieldUse; isDropped: boolean; isWhole: boolean; inner: Part[] };

function partOf(use: FieldUse, parent: string, around: FieldUse): Part {
  const path = parent === '' ? use.name : `${parent}.${use.name}`;
  const inner = use.isPartial ? [] : use.fields.map((field) => partOf(field, path, use));
  const kept = inner.filter(({ isDropped }) => !isDropped);
  const isDropped = uselessReason(use, around) !== undefined || (inner.length > 0 && kept.length === 0);
  return { path, use, isDropped, isWhole: !isDropped && inner.every(({ isWhole }) => isWhole), inner: kept };
}

function pathsOf(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => (part.isWhole ? [part.path] : pathsOf(part.inner)));
}

/** Returns the fields that are kept only in part, beginning with those where this saves the least. */
function choicesIn(parts: readonly Part[]): Part[] {
  const choices = parts.flatMap(function all(part): Part[] {
    return part.isWhole ? [] : [part, ...part.inner.flatMap(all)];
  });
  return choices
    .map((part) => ({ part, saved: savedBy(part) }))
    .toSorted((a, b) => a.saved - b.saved)
    .map(({ part }) => part);
}

function savedBy({ path, use, inner }: Part): number {
  const names = pathsOf(inner).map((one) => one.slice(path.length + 1));
  return use.bytes - keptBytes({ ...use, name: '' }, names);
}

/** Names of kept fields; undefined for a field that is kept whole. */
type Kept = Map<string, Kept | undefined>;

/**
 * Returns the number of bytes that `response_fields` leaves of the measured responses. Exact except for commas: an
 * object that lacks kept fields may be off by one.
 */
export function keptBytes(answers: FieldUse, paths: readonly string[]): number {
  return bytesOf(answers, treeOf(paths)) - nameBytes(answers);
}

/** Builds the tree of kept fields. Keeping `a` includes all of `a.b`. */
function treeOf(paths: readonly string[]): Kept {
  const root: Kept = new Map();
  for (const path of paths) {
    const names = parseDotPath(path);
    let tree: Kept | undefined = root;
    for (const [index, name] of names.entries()) {
      if (!tree) break;
      const isLast = index === names.length - 1;
      if (isLast) tree.set(name, undefined);
      else if (!tree.has(name)) tree.set(name, new Map());
      tree = tree.get(name);
    }
  }
  return root;
}

function bytesOf(use: FieldUse, kept: Kept): number {
  const fields = use.fields.filter(({ name }) => kept.has(name));
  const pairs = fields.reduce((sum, { times }) => sum + times, 0);
  const filled = fields.reduce((most, { times }) => Math.max(most, times), 0);
  const inner = fields.reduce((sum, field) => {
    const tree = kept.get(field.name);
    return sum + (tree ? bytesOf(field, tree) : field.bytes);
  }, 0);
  return nameBytes(use) + use.around + 2 * use.objects + inner + Math.max(0, pairs - Math.min(filled, use.objects));
}

/** Returns the bytes of names, including quotes and colons; the response itself has no name. */
function nameBytes({ name, times }: FieldUse): number {
  return name === '' ? 0 : times * (new TextEncoder().encode(JSON.stringify(name)).length + 1);
}
