import { charactersOfToken } from '../../../../../src/domain/pieces/tokens.ts';
import type { Proposal } from '../../../answers.ts';

type Field = Proposal['fields'][number];

/** Which fields agents get: those that hold no others, by path. The fields around them follow. */
export type FieldChoice = { fields: readonly Field[]; innermost: readonly string[]; kept: ReadonlySet<string> };

const isIn = (path: string, outer: string) => path === outer || path.startsWith(`${outer}.`);
const parentOf = (path: string) => (path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : '');
const insideOf = (fields: readonly Field[], outer: string) => fields.filter(({ path }) => parentOf(path) === outer);

/** The choice that some `response_fields` make; undefined keeps all. */
export function choiceBy(fields: readonly Field[], paths: readonly string[] | undefined): FieldChoice {
  const outer = new Set(fields.map(({ path }) => parentOf(path)));
  const innermost = fields.map(({ path }) => path).filter((path) => !outer.has(path));
  const isKept = (path: string) => !paths || paths.some((one) => isIn(path, one) || isIn(one, path));
  return { fields, innermost, kept: new Set(innermost.filter(isKept)) };
}

export function stateOf({ innermost, kept }: FieldChoice, path: string): 'kept' | 'partly' | 'out' {
  const own = innermost.filter((one) => isIn(one, path));
  const count = own.filter((one) => kept.has(one)).length;
  return count === 0 ? 'out' : count === own.length ? 'kept' : 'partly';
}

/** After a field was taken in or left out, with everything inside it. */
export function toggled(choice: FieldChoice, path: string): FieldChoice {
  const others = [...choice.kept].filter((one) => !isIn(one, path));
  const own = stateOf(choice, path) === 'out' ? choice.innermost.filter((one) => isIn(one, path)) : [];
  return { ...choice, kept: new Set([...others, ...own]) };
}

/** The `response_fields` of a choice; undefined keeps everything. */
export function pathsOf(choice: FieldChoice): string[] | undefined {
  if (choice.kept.size === choice.innermost.length) return undefined;
  const of = (outer: string): string[] =>
    insideOf(choice.fields, outer).flatMap(({ path }) => {
      const state = stateOf(choice, path);
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

/** Estimated tokens of answers that have `whole` of them, without the fields that are left out. */
export function tokensLeft(choice: FieldChoice, whole: number): number {
  const leftOut = (outer: string): number =>
    insideOf(choice.fields, outer).reduce((sum, { path, bytes, times }) => {
      const state = stateOf(choice, path);
      // A field also takes the comma beside it.
      return sum + (state === 'out' ? bytes + times : state === 'partly' ? leftOut(path) : 0);
    }, 0);
  return Math.max(0, whole - Math.floor(leftOut('') / charactersOfToken));
}
