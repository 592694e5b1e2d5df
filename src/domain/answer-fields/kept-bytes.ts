import type { FieldUse } from './field-use.ts';

/** Names of kept fields; undefined for a field that is kept whole. */
type Kept = Map<string, Kept | undefined>;

/**
 * How many bytes `response_fields` leaves of the measured answers. Exact but for commas: of an object that lacks kept
 * fields, one more or less is counted.
 */
export function keptBytes(answers: FieldUse, paths: readonly string[]): number {
  return bytesOf(answers, treeOf(paths)) - nameBytes(answers);
}

/** Keeping `a` includes all of `a.b`. */
function treeOf(paths: readonly string[]): Kept {
  const root: Kept = new Map();
  for (const path of paths) {
    const names = path.trim().replace(/^\./, '').split('.');
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

/** The names with their quotes and colons; the answer itself has none. */
function nameBytes({ name, times }: FieldUse): number {
  return name === '' ? 0 : times * (new TextEncoder().encode(JSON.stringify(name)).length + 1);
}
