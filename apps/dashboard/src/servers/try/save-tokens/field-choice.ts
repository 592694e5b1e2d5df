import { charactersPerToken } from '@toolhost/tool-config/tokens';
import type { Proposal } from '../../../api-types.ts';

export type Field = Proposal['fields'][number];

/** Selection of response fields. `leafPaths` and `keptPaths` are paths of leaf fields; enclosing fields follow from them. */
export type FieldChoice = { fields: readonly Field[]; leafPaths: readonly string[]; keptPaths: ReadonlySet<string> };

const isWithin = (path: string, outer: string) => path === outer || path.startsWith(`${outer}.`);
const getParent = (path: string) => (path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : '');
const getChildren = (fields: readonly Field[], outer: string) => fields.filter(({ path }) => getParent(path) === outer);

/** Converts `response_fields` to a choice. Undefined keeps all fields. */
export function createChoice(fields: readonly Field[], paths: readonly string[] | undefined): FieldChoice {
  const enclosingPaths = new Set(fields.map(({ path }) => getParent(path)));
  const leafPaths = fields.map(({ path }) => path).filter((path) => !enclosingPaths.has(path));
  const isPathKept = (path: string) => !paths || paths.some((kept) => isWithin(path, kept) || isWithin(kept, path));
  return { fields, leafPaths, keptPaths: new Set(leafPaths.filter(isPathKept)) };
}

export function getFieldState({ leafPaths, keptPaths }: FieldChoice, path: string): 'kept' | 'partly' | 'out' {
  const leaves = leafPaths.filter((leaf) => isWithin(leaf, path));
  const keptCount = leaves.filter((leaf) => keptPaths.has(leaf)).length;
  if (keptCount === 0) return 'out';
  return keptCount === leaves.length ? 'kept' : 'partly';
}

/** Returns the choice after a field and everything inside it was toggled. */
export function toggleField(choice: FieldChoice, path: string): FieldChoice {
  const otherPaths = [...choice.keptPaths].filter((leaf) => !isWithin(leaf, path));
  const leaves = getFieldState(choice, path) === 'out' ? choice.leafPaths.filter((leaf) => isWithin(leaf, path)) : [];
  return { ...choice, keptPaths: new Set([...otherPaths, ...leaves]) };
}

/** Converts a choice to `response_fields`. Undefined keeps all fields. */
export function toResponseFields(choice: FieldChoice): string[] | undefined {
  if (choice.keptPaths.size === choice.leafPaths.length) return undefined;
  const collect = (outer: string): string[] =>
    getChildren(choice.fields, outer).flatMap(({ path }) => {
      const state = getFieldState(choice, path);
      if (state === 'partly') return collect(path);
      return state === 'kept' ? [path] : [];
    });
  return collect('');
}

/** Sorts the fields by size in descending order, each after its parent. */
export function sortBySize(fields: readonly Field[]): Field[] {
  const collect = (outer: string): Field[] =>
    getChildren(fields, outer)
      .toSorted((a, b) => b.bytes - a.bytes)
      .flatMap((field) => [field, ...collect(field.path)]);
  return collect('');
}

/** Estimates the tokens of responses with `totalTokens` tokens after fields are omitted. */
export function estimateTokensLeft(choice: FieldChoice, totalTokens: number): number {
  const countOmitted = (outer: string): number =>
    getChildren(choice.fields, outer).reduce((sum, { path, bytes, times }) => {
      const state = getFieldState(choice, path);
      if (state === 'partly') return sum + countOmitted(path);
      // Each occurrence of a field also has a comma.
      return state === 'out' ? sum + bytes + times : sum;
    }, 0);
  return Math.max(0, totalTokens - Math.floor(countOmitted('') / charactersPerToken));
}
