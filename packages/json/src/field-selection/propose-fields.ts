import { parseDotPath } from '@toolhost/errors/dot-path';
import type { FieldStats } from './field-statistics.ts';

/** Reasons why a field is probably of no use to a model. */
export const uselessReasons = ['empty', 'constant', 'link', 'id', 'picture'] as const;
export type UselessReason = (typeof uselessReasons)[number];

/** Minimum number of occurrences before a field's values are meaningful. */
const minOccurrences = { empty: 2, constant: 5 };

/** Matches names of links for people, which an agent may have to pass on. */
const personLinkPattern =
  /^(html|web|public|share|short|app|canonical|receipt|(browser_)?download|hosted_\w+|checkout|payment)_?url$|^permalink$|^webViewLink$/i;
const linkNamePattern = /(^|_)(url|uri|href|link)s?$|(Url|URL|Uri|URI|Href|Link)s?$/;
const linkObjectPattern = /^_?links?$|^_embedded_links$|^hypermedia$/i;
const idPattern = /^(node_id|gravatar_id|etag|_etag|_rev|__typename|__v|_type|graphql_id|cursor_id)$/i;
const picturePattern = /avatar|gravatar|thumbnail|favicon|(^|_)icons?(_|$)|^image_(\d+|original|url)$|profile_image/i;

/**
 * Returns the reason why a field is probably of no use, judged by its name and its values. `parent` is the enclosing
 * field.
 */
export function getUselessReason(stats: FieldStats, parent: FieldStats): UselessReason | undefined {
  const { name, times, empty, urls, always, objects, fields } = stats;
  if (empty === times && times >= minOccurrences.empty) return 'empty';
  if (idPattern.test(name)) return 'id';
  if (picturePattern.test(name)) return 'picture';
  const hasOnlyUrls = urls > 0 && urls + empty === times;
  if (hasOnlyUrls && linkNamePattern.test(name) && !isPersonLink(name, parent)) return 'link';
  if (linkObjectPattern.test(name) && objects > 0 && containLinks(fields)) return 'link';
  return always !== undefined && times >= minOccurrences.constant && objects === 0 ? 'constant' : undefined;
}

/** Returns true for links for people. A field named only `url` is one if no other field is. */
function isPersonLink(name: string, parent: FieldStats): boolean {
  if (personLinkPattern.test(name)) return true;
  return /^(url|link)$/i.test(name) && !parent.fields.some((field) => personLinkPattern.test(field.name));
}

function containLinks(fields: readonly FieldStats[]): boolean {
  return fields.some(({ urls, fields: inner }) => urls > 0 || containLinks(inner));
}

/**
 * Proposes the fields to keep of the measured responses: those that are probably useful, at most `maxPaths`. Undefined
 * if nothing would be removed, or nothing kept.
 */
export function proposeFields(stats: FieldStats, maxPaths: number): string[] | undefined {
  if (stats.isPartial) return undefined;
  const selections = stats.fields.map((field) => toFieldSelection(field, '', stats));
  if (selections.every(({ isKeptWhole }) => isKeptWhole)) return undefined;
  const keptSelections = selections.flatMap((selection) => (selection.isDropped ? [] : [selection]));
  const partialFields = getPaths(keptSelections).length > maxPaths ? getPartialFields(keptSelections) : [];
  for (const partialField of partialFields) {
    if (getPaths(keptSelections).length <= maxPaths) break;
    partialField.isKeptWhole = true;
  }
  const paths = getPaths(keptSelections);
  return paths.length === 0 || paths.length > maxPaths ? undefined : paths;
}

/** A field, and the part of it that is kept. */
type FieldSelection = {
  path: string;
  stats: FieldStats;
  isDropped: boolean;
  isKeptWhole: boolean;
  inner: FieldSelection[];
};

function toFieldSelection(stats: FieldStats, parentPath: string, parent: FieldStats): FieldSelection {
  const path = parentPath === '' ? stats.name : `${parentPath}.${stats.name}`;
  const inner = stats.isPartial ? [] : stats.fields.map((field) => toFieldSelection(field, path, stats));
  const keptSelections = inner.filter(({ isDropped }) => !isDropped);
  const isDropped = getUselessReason(stats, parent) !== undefined || (inner.length > 0 && keptSelections.length === 0);
  return {
    path,
    stats,
    isDropped,
    isKeptWhole: !isDropped && inner.every(({ isKeptWhole }) => isKeptWhole),
    inner: keptSelections,
  };
}

function getPaths(selections: readonly FieldSelection[]): string[] {
  return selections.flatMap((selection) => (selection.isKeptWhole ? [selection.path] : getPaths(selection.inner)));
}

/** Returns the fields that are kept only in part, beginning with those where this saves the least. */
function getPartialFields(selections: readonly FieldSelection[]): FieldSelection[] {
  const partialFields = selections.flatMap(function collect(selection): FieldSelection[] {
    return selection.isKeptWhole ? [] : [selection, ...selection.inner.flatMap(collect)];
  });
  return partialFields
    .map((selection) => ({ part: selection, savedBytes: getSavedBytes(selection) }))
    .toSorted((a, b) => a.savedBytes - b.savedBytes)
    .map(({ part: selection }) => selection);
}

function getSavedBytes({ path, stats, inner }: FieldSelection): number {
  const names = getPaths(inner).map((fieldPath) => fieldPath.slice(path.length + 1));
  return stats.bytes - getKeptBytes({ ...stats, name: '' }, names);
}

/** Names of kept fields; undefined for a field that is kept whole. */
type KeptFields = Map<string, KeptFields | undefined>;

/**
 * Returns the number of bytes that `response_fields` leaves of the measured responses. Exact except for commas: an
 * object that lacks kept fields may be off by one.
 */
export function getKeptBytes(stats: FieldStats, paths: readonly string[]): number {
  return getBytes(stats, toKeptFields(paths)) - getNameBytes(stats);
}

/** Builds the tree of kept fields. Keeping `a` includes all of `a.b`. */
function toKeptFields(paths: readonly string[]): KeptFields {
  const root: KeptFields = new Map();
  for (const path of paths) {
    const names = parseDotPath(path);
    let tree: KeptFields | undefined = root;
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

function getBytes(stats: FieldStats, keptFields: KeptFields): number {
  const fields = stats.fields.filter(({ name }) => keptFields.has(name));
  const pairs = fields.reduce((sum, { times }) => sum + times, 0);
  const maxOccurrences = fields.reduce((max, { times }) => Math.max(max, times), 0);
  const inner = fields.reduce((sum, field) => {
    const tree = keptFields.get(field.name);
    return sum + (tree ? getBytes(field, tree) : field.bytes);
  }, 0);
  return (
    getNameBytes(stats) +
    stats.around +
    2 * stats.objects +
    inner +
    Math.max(0, pairs - Math.min(maxOccurrences, stats.objects))
  );
}

/** Returns the bytes of names, including quotes and colons; the response itself has no name. */
function getNameBytes({ name, times }: FieldStats): number {
  return name === '' ? 0 : times * (new TextEncoder().encode(JSON.stringify(name)).length + 1);
}
