import type { FieldProblem, Verdict } from '../../../api-types.ts';
import { type Config, isJsonEqual } from '../../config.ts';

/** Problems or warnings of a configuration, which may be older than the current one. */
type FindingList = { config: Config; list: readonly FieldProblem[] };

/** Problem or warning. A pending one may no longer apply. */
export type Finding = { path: string; message: string; isPending?: true };

/** Sources of problems and warnings. */
export type Sources = {
  config: Config;
  /** Slug of a stored server. */
  fixedSlug: unknown;
  /** Last verdict of the service, with the configuration that was checked. */
  lastCheck: { config: Config; verdict: Verdict } | undefined;
  /** Problems that the last save was rejected for. */
  rejection: FindingList | undefined;
  /** False while a new server is being saved, because it takes the slug itself. */
  mayBeTaken: boolean;
  /** Messages by path for fields whose input the configuration cannot hold yet. */
  blocks: ReadonlyMap<string, string>;
};

/** Returns the problems and warnings of the current configuration. `isBlocked` is true if it cannot be sent. */
export function getFindings({ config, fixedSlug, lastCheck, rejection, mayBeTaken, blocks }: Sources) {
  const blockFindings: Finding[] = [...blocks].map(([path, message]) => ({ path, message }));
  const hasSlugChanged = fixedSlug !== undefined && config.slug !== fixedSlug;
  // The slug of a stored server cannot change. Other problems of a changed slug are irrelevant.
  if (hasSlugChanged)
    blockFindings.push({
      path: 'slug',
      message: `a slug cannot be changed; allowed: "${fixedSlug}", or create another server`,
    });
  const fromLastCheck = (list: readonly FieldProblem[] = []) => (lastCheck ? [{ config: lastCheck.config, list }] : []);
  const slugTakenMessage = mayBeTaken ? lastCheck?.verdict.slug_taken : undefined;
  const problems = getCurrentFindings(
    [
      ...(rejection ? [rejection] : []),
      ...fromLastCheck(lastCheck?.verdict.problems),
      ...(slugTakenMessage === undefined ? [] : fromLastCheck([{ path: 'slug', message: slugTakenMessage }])),
    ],
    config,
  );
  return {
    problems: removeDuplicates([
      ...blockFindings,
      ...problems.filter(({ path }) => !hasSlugChanged || path !== 'slug'),
    ]) as readonly Finding[],
    warnings: getCurrentFindings(fromLastCheck(lastCheck?.verdict.warnings), config) as readonly Finding[],
    isBlocked: blockFindings.length > 0,
  };
}

/** Message of a pending finding. */
export const recheckingMessage = 'is being rechecked';

/** Fields whose problems depend on nothing else. */
const independentFields = ['name', 'slug', 'description'] as const;
type ConfigSection = (typeof independentFields)[number] | 'rest';

/** Returns the section of the configuration that a problem depends on. */
function getSection(path: string): ConfigSection {
  return independentFields.find((field) => field === path) ?? 'rest';
}

function isSameSection(section: ConfigSection, a: Config, b: Config): boolean {
  if (a === b) return true;
  if (section !== 'rest') return isJsonEqual(a[section], b[section]);
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].filter((name) => getSection(name) === 'rest').every((name) => isJsonEqual(a[name], b[name]));
}

/**
 * Returns the findings that apply to the current configuration. Findings of a section that has changed since they were
 * made are replaced by pending ones, which keep the layout stable until the next verdict.
 */
function getCurrentFindings(findingLists: readonly FindingList[], config: Config): Finding[] {
  const sections: ConfigSection[] = [...independentFields, 'rest'];
  return sections.flatMap((section) => {
    const candidates = findingLists.map((findings) => ({
      isCurrent: isSameSection(section, findings.config, config),
      list: findings.list.filter(({ path }) => getSection(path) === section),
    }));
    const current = candidates.filter(({ isCurrent }) => isCurrent);
    if (current.length > 0) return removeDuplicates(current.flatMap(({ list }) => list));
    const paths = new Set(candidates.at(-1)?.list.map(({ path }) => path));
    return [...paths].map((path): Finding => ({ path, message: recheckingMessage, isPending: true }));
  });
}

function removeDuplicates(list: readonly Finding[]): Finding[] {
  return [...new Map(list.map((finding) => [JSON.stringify([finding.path, finding.message]), finding])).values()];
}
