import type { FieldProblem } from '../../answers.ts';
import type { Config } from '../config.ts';

/** What somebody said about a configuration, which may be older than the one on screen. */
export type Said = { config: Config; list: readonly FieldProblem[] };

/** A problem or a warning; without a message while it is not known whether it is still there. */
export type Known = { path: string; message: string; isPending?: true };

/** What stands where the answer about something changed is on its way. */
export const checkedAgain = 'is being checked again';

export function isCertain({ isPending }: Known): boolean {
  return !isPending;
}

const independent = ['name', 'slug', 'description'] as const;
type Part = (typeof independent)[number] | 'rest';

/** The part of the configuration that a problem is about: what is said of it depends on nothing outside of that part. */
function partOf(path: string): Part {
  return independent.find((field) => field === path) ?? 'rest';
}

function sameValue(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function isSamePart(part: Part, a: Config, b: Config): boolean {
  if (a === b) return true;
  if (part !== 'rest') return sameValue(a[part], b[part]);
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].filter((name) => partOf(name) === 'rest').every((name) => sameValue(a[name], b[name]));
}

/**
 * What stands of what was said about the configuration on screen. About a part that has changed since nothing does; a
 * line keeps the space of what the last of these lists said there, until the next answer.
 */
export function standing(said: readonly Said[], config: Config): Known[] {
  const parts: Part[] = [...independent, 'rest'];
  return parts.flatMap((part) => {
    const about = said.map(({ config: judged, list }) => ({
      isCurrent: isSamePart(part, judged, config),
      list: list.filter(({ path }) => partOf(path) === part),
    }));
    const current = about.filter(({ isCurrent }) => isCurrent);
    if (current.length > 0) return withoutTwins(current.flatMap(({ list }) => list));
    const paths = new Set(about.at(-1)?.list.map(({ path }) => path));
    return [...paths].map((path): Known => ({ path, message: checkedAgain, isPending: true }));
  });
}

export function withoutTwins(list: readonly Known[]): Known[] {
  const seen = new Set<string>();
  return list.filter(({ path, message }) => {
    const text = JSON.stringify([path, message]);
    return !seen.has(text) && seen.add(text);
  });
}
