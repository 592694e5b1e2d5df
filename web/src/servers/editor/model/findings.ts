import type { FieldProblem, Verdict } from '../../../answers.ts';
import { type Config, sameJson } from '../../config.ts';

/** Problems or warnings of a configuration, which may be older than the current one. */
type Findings = { config: Config; list: readonly FieldProblem[] };

/** Problem or warning. It is pending while it is unknown whether it still applies. */
export type Known = { path: string; message: string; isPending?: true };

/** Sources of problems and warnings. */
export type Sources = {
  config: Config;
  /** Slug of a stored server. */
  fixedSlug: unknown;
  /** Last verdict of the service, with the configuration that was checked. */
  checked: { config: Config; verdict: Verdict } | undefined;
  /** Problems for which the last save was rejected. */
  refused: Findings | undefined;
  /** False while a new server is being saved, because it takes the slug itself. */
  mayBeTaken: boolean;
  /** Messages by path for fields whose input the configuration cannot hold yet. */
  blocks: ReadonlyMap<string, string>;
};

/** Returns the problems and warnings of the current configuration. `isBlocked` is true if it cannot be sent. */
export function findingsOf({ config, fixedSlug, checked, refused, mayBeTaken, blocks }: Sources) {
  const own: Known[] = [...blocks].map(([path, message]) => ({ path, message }));
  const isMoved = fixedSlug !== undefined && config.slug !== fixedSlug;
  // The slug of a stored server cannot change. Other problems of a changed slug are irrelevant.
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

/** Message of a pending finding. */
export const checkedAgain = 'is being rechecked';

const independent = ['name', 'slug', 'description'] as const;
type Part = (typeof independent)[number] | 'rest';

/**
 * Returns the section of the configuration that a problem is about. Problems of a section depend only on that section.
 */
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
 * Returns the findings that apply to the current configuration. Findings of a section that has changed since are
 * replaced by pending ones, which keep the layout stable until the next verdict.
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
