import type { Problem } from '../../../errors.ts';
import { somePlaceholder, someText } from '../../http/placeholders.ts';
import { mostHeaderLength } from '../../http/values.ts';

/** What the variables of a server make of its configuration, counted without filling anything. */

type Variables = { [name: string]: { value: string } } | undefined;

/** Most characters that variables fill in one field of a tool, in the headers of a server, in a fixed argument. */
export const mostFilledOfField = 65_536;
/** The same in a whole configuration, and most placeholders in it. */
const mostOfConfig = { characters: 4 * 1024 * 1024, placeholders: 50_000 };

/** Length of a text with its variables filled in. */
export function filledLength(text: string, variables: Variables): number {
  let length = text.length;
  visitVariables(text, variables, (value, placeholder, times) => {
    length += (value - placeholder) * times;
  });
  return length;
}

/** Number of characters that variables fill in the strings of a value. */
export function filledCharacters(value: unknown, variables: Variables): number {
  let sum = 0;
  visitVariables(value, variables, (length, _, times) => {
    sum += length * times;
  });
  return sum;
}

/** Gives the lengths of the values of variables, and of the placeholders in whose place they come. */
function visitVariables(
  value: unknown,
  variables: Variables = {},
  visit: (length: number, placeholder: number, times: number) => void,
): void {
  const note = (name: string, placeholder: number, times: number) => {
    if (Object.hasOwn(variables, name)) visit(variables[name]?.value.length ?? 0, placeholder, times);
    return false;
  };
  someText(value, (text) => somePlaceholder(text, note));
}

export function lengthProblem(length: number, most: number): string | undefined {
  return length > most ? `has ${length} characters when filled; allowed: ${most}` : undefined;
}

/** The problem of a value in which variables fill too much. */
export function fillingProblem(value: unknown, variables: Variables): string | undefined {
  const filled = filledCharacters(value, variables);
  if (filled <= mostFilledOfField) return undefined;
  return `variables fill ${filled} characters of it; allowed: ${mostFilledOfField}; use shorter ones, or fewer {{NAME}}`;
}

/** Why headers are too long when they are filled, each by itself or all together; paths are `headers` and below. */
export function filledHeaderProblems(headers: Record<string, string> = {}, variables: Variables): Problem[] {
  const single = Object.entries(headers).flatMap(([name, value]) =>
    problemAt(`headers.${name}`, lengthProblem(filledLength(value, variables), mostHeaderLength)),
  );
  return single.length > 0 ? single : problemAt('headers', fillingProblem(headers, variables));
}

export function problemAt(path: string, message: string | undefined): Problem[] {
  return message === undefined ? [] : [{ path, message }];
}

/** What variables fill in a whole configuration. */
export type Filling = {
  /** Characters of the URLs of tools as they are written. */
  urls: number;
  /** Characters that are filled in them; `base_url` counts each time. */
  inUrls: number;
  /** Characters everywhere else. */
  elsewhere: number;
  placeholders: number;
};

/** Counts the placeholders of a value, and what variables fill in it. */
export function countFilling(
  filling: Filling,
  value: unknown,
  variables: Variables = {},
  where: 'inUrls' | 'elsewhere',
) {
  const note = (name: string, _: number, times: number) => {
    filling.placeholders += times;
    if (Object.hasOwn(variables, name)) filling[where] += (variables[name]?.value.length ?? 0) * times;
    return false;
  };
  someText(value, (text) => somePlaceholder(text, note));
}

/** The problem of a configuration in which all that is filled together is too much. */
export function wholeFillingProblem({ inUrls, elsewhere, placeholders }: Filling): string | undefined {
  if (placeholders > mostOfConfig.placeholders)
    return `has ${placeholders} placeholders {{NAME}} in all fields together; allowed: ${mostOfConfig.placeholders}`;
  const characters = inUrls + elsewhere;
  if (characters <= mostOfConfig.characters) return undefined;
  return `variables and base_url fill ${characters} characters in all fields together; allowed: ${mostOfConfig.characters}; use shorter ones, or fewer {{NAME}}`;
}
