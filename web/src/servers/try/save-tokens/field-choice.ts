import { charactersOfToken } from '../../../../../src/domain/pieces/tokens.ts';
import type { Proposal } from '../../../answers.ts';

type Field = Proposal['fields'][number];

/** Selection of response fields. `innermost` and `kept` are paths of leaf fields; enclosing fields follow from them. */
export type FieldChoice = { fields: readonly Field[]; innermost: readonly string[]; kept: ReadonlySet<string> };

const isIn = (path: string, outer: string) => path === outer || path.startsWith(`${outer}.`);
const parentOf = (path: string) => (path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : '');
const insideOf = (fields: readonly Field[], outer: string) => fields.filter(({ path }) => parentOf(path) === outer);

/** Converts `response_fields` to a choice. Undefined keeps all fields. */
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

/** Returns the choice after a field and everything inside it was toggled. */
export function toggled(choice: FieldChoice, path: string): FieldChoice {
  const others = [...choice.kept].filter((one) => !isIn(one, path));
  const own = stateOf(choice, path) === 'out' ? choice.innermost.filter((one) => isIn(one, path)) : [];
  return { ...choice, kept: new Set([...others, ...own]) };
}

/** Converts a choice to `response_fields`. Undefined keeps all fields. */
export function pathsOf(choice: FieldChoice): string[] | undefined {
  if (choice.kept.size === choice.innermost.length) return undefined;
  const of = (outer: string): string[] =>
    insideOf(choice.fields, outer).flatMap(({ path }) => {
      const state = stateOf(choice, path);
      return state === 'kept' ? [path] : state === 'partly' ? of(path) : [];
    });
  return of('');
}

/** Sorts the fields by size in descending order, each after its parent. */
export function largestFirst(fields: readonly Field[]): Field[] {
  const of = (outer: string): Field[] =>
    insideOf(fields, outer)
      .toSorted((a, b) => b.bytes - a.bytes)
      .flatMap((field) => [field, ...of(field.path)]);
  return of('');
}

/** Estimates the tokens of responses with `whole` tokens after fields are omitted. */
export function tokensLeft(choice: FieldChoice, whole: number): number {
  const leftOut = (outer: string): number =>
    insideOf(choice.fields, outer).reduce((sum, { path, bytes, times }) => {
      const state = stateOf(choice, path);
      // A field also takes its comma.
      return sum + (state === 'out' ? bytes + times : state === 'partly' ? leftOut(path) : 0);
    }, 0);
  return Math.max(0, whole - Math.floor(leftOut('') / charactersOfToken));
}
