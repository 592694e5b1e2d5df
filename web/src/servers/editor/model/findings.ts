import type { FieldProblem } from '../../../answers.ts';
import { type Config, sameJson } from '../../config.ts';

/** Problems or warnings of a configuration, which may be older than the one on screen. */
export type Findings = { config: Config; list: readonly FieldProblem[] };

/** A problem or a warning; pending while it is not known whether it still holds. */
export type Known = { path: string; message: string; isPending?: true };

/** The message of a pending finding. */
export const checkedAgain = 'is being checked again';

export function isCertain({ isPending }: Known): boolean {
  return !isPending;
}

const independent = ['name', 'slug', 'description'] as const;
type Part = (typeof independent)[number] | 'rest';

/** The part of the configuration that a problem is about. Problems of a part depend only on that part. */
function partOf(path: string): Part {
  return independent.find((field) => field === path) ?? 'rest';
}

function isSamePart(part: Part, a: Config, b: Config): boolean {
  if (a === b) return true;
  if (part !== 'rest') return sameJson(a[part], b[part]);
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].filter((name) => partOf(name) === 'rest').every((name) => sameJson(a[name], b[name]));
}

/**
 * The findings that hold for the configuration on screen. Those of a part that has changed since do not; the findings of
 * the last list for that part are replaced by pending ones, which keep their space until the next answer.
 */
export function currentFindings(all: readonly Findings[], config: Config): Known[] {
  const parts: Part[] = [...independent, 'rest'];
  return parts.flatMap((part) => {
    const about = all.map(({ config: checked, list }) => ({
      isCurrent: isSamePart(part, checked, config),
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
