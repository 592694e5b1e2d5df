import type { FieldProblem, Verdict } from '../../../answers.ts';
import { type Config, sameJson } from '../../config.ts';

/** Problems or warnings of a configuration, which may be older than the one on screen. */
type Findings = { config: Config; list: readonly FieldProblem[] };

/** A problem or a warning; pending while it is not known whether it still holds. */
export type Known = { path: string; message: string; isPending?: true };

/** What problems and warnings come from. */
export type Sources = {
  config: Config;
  /** The slug of a stored server. */
  fixedSlug: unknown;
  /** The last verdict of the service, with the configuration that it is about. */
  checked: { config: Config; verdict: Verdict } | undefined;
  /** Why the last attempt to save was refused. */
  refused: Findings | undefined;
  /** False while a server is being stored: it takes its slug itself. */
  mayBeTaken: boolean;
  /** Messages about fields whose values the configuration cannot hold yet, by path. */
  blocks: ReadonlyMap<string, string>;
};

/** What is known of the configuration on screen. `isBlocked` while it cannot even be sent. */
export function findingsOf({ config, fixedSlug, checked, refused, mayBeTaken, blocks }: Sources) {
  const own: Known[] = [...blocks].map(([path, message]) => ({ path, message }));
  const isMoved = fixedSlug !== undefined && config.slug !== fixedSlug;
  // The slug of a stored server cannot change, so this is the only problem of another one.
  if (isMoved)
    own.push({ path: 'slug', message: `a slug cannot be changed; allowed: "${fixedSlug}", or create another server` });
  const said = (list: readonly FieldProblem[] = []) => (checked ? [{ config: checked.config, list }] : []);
  const taken = mayBeTaken ? checked?.verdict.slug_taken : undefined;
  const problems = currentFindings(
    [
      ...(refused ? [refused] : []),
      ...said(checked?.verdict.problems),
      ...(taken === undefined ? [] : said([{ path: 'slug', message: taken }])),
    ],
    config,
  );
  return {
    problems: withoutTwins([...own, ...problems.filter(({ path }) => !isMoved || path !== 'slug')]) as readonly Known[],
    warnings: currentFindings(said(checked?.verdict.warnings), config) as readonly Known[],
    isBlocked: own.length > 0,
  };
}

/** The message of a pending finding. */
export const checkedAgain = 'is being checked again';

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
function currentFindings(all: readonly Findings[], config: Config): Known[] {
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

function withoutTwins(list: readonly Known[]): Known[] {
  return [...new Map(list.map((known) => [JSON.stringify([known.path, known.message]), known])).values()];
}
