import { charactersOfToken } from '../../../../../src/domain/pieces/tokens.ts';
import type { Proposal } from '../../../answers.ts';

type Field = Proposal['fields'][number];

/** Fields that agents do not get, by path. A field is left out with everything inside it. */
export type LeftOut = ReadonlySet<string>;

export type FieldState = 'kept' | 'partly' | 'out';

const isInside = (path: string, outer: string) => path.startsWith(`${outer}.`);
const parentOf = (path: string) => (path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : '');
const insideOf = (fields: readonly Field[], outer: string) => fields.filter(({ path }) => parentOf(path) === outer);

export function stateOf(path: string, out: LeftOut): FieldState {
  const paths = [...out];
  if (paths.some((one) => one === path || isInside(path, one))) return 'out';
  return paths.some((one) => isInside(one, path)) ? 'partly' : 'kept';
}

/** The fields that some `response_fields` leave out; undefined keeps all. */
export function leftOutBy(fields: readonly Field[], paths: readonly string[] | undefined): LeftOut {
  if (!paths) return new Set();
  const isKept = (path: string) => paths.some((one) => one === path || isInside(path, one) || isInside(one, path));
  return outermost(fields.map(({ path }) => path).filter((path) => !isKept(path)));
}

/** After a field was taken in or left out. */
export function toggled(fields: readonly Field[], out: LeftOut, path: string): LeftOut {
  const others = [...out].filter((one) => one !== path && !isInside(one, path));
  if (stateOf(path, out) !== 'out') return withEmptied(fields, [...others, path]);
  const outer = others.find((one) => isInside(path, one));
  if (outer === undefined) return new Set(others);
  // What is around it was left out as a whole: only the fields beside it still are.
  const around = fields.map((field) => field.path).filter((one) => isInside(path, one) && !isInside(outer, one));
  const beside = around.flatMap((one) => insideOf(fields, one).map((field) => field.path));
  const stays = beside.filter((one) => one !== path && !isInside(path, one));
  return new Set([...others.filter((one) => one !== outer), ...stays]);
}

/** A field of which everything is left out is left out itself. */
function withEmptied(fields: readonly Field[], paths: readonly string[]): LeftOut {
  const out = new Set(outermost(paths));
  for (let path = parentOf(paths.at(-1) ?? ''); path !== ''; path = parentOf(path)) {
    if (!insideOf(fields, path).every((field) => out.has(field.path))) break;
    for (const field of insideOf(fields, path)) out.delete(field.path);
    out.add(path);
  }
  return out;
}

function outermost(paths: readonly string[]): LeftOut {
  return new Set(paths.filter((path) => !paths.some((one) => isInside(path, one))));
}

/** The `response_fields` of a choice; undefined keeps everything. */
export function pathsOf(fields: readonly Field[], out: LeftOut): string[] | undefined {
  if (out.size === 0) return undefined;
  const of = (outer: string): string[] =>
    insideOf(fields, outer).flatMap(({ path }) => {
      const state = stateOf(path, out);
      return state === 'kept' ? [path] : state === 'partly' ? of(path) : [];
    });
  return of('');
}

/** The fields with the largest first, each after the one that it is in. */
export function largestFirst(fields: readonly Field[]): Field[] {
  const of = (outer: string): Field[] =>
    insideOf(fields, outer)
      .toSorted((a, b) => b.bytes - a.bytes)
      .flatMap((field) => [field, ...of(field.path)]);
  return of('');
}

/** Estimated tokens of the answers without the fields that are left out. */
export function tokensLeft({ fields, tokens }: Proposal, out: LeftOut): number {
  // A field also takes the comma beside it.
  const left = fields.filter(({ path }) => out.has(path)).reduce((sum, { bytes, times }) => sum + bytes + times, 0);
  return Math.max(0, tokens.whole - Math.floor(left / charactersOfToken));
}
