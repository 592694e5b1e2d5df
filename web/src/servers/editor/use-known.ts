import type { UseMutationResult } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { FieldProblem, StoredServer } from '../../answers.ts';
import { ApiProblem } from '../../api.ts';
import type { Config } from '../config.ts';
import { currentFindings, type Findings, type Known, withoutTwins } from './findings.ts';
import type { Judged } from './use-verdict.ts';

type Sources = {
  config: Config;
  judged: Judged | undefined;
  saving: UseMutationResult<StoredServer, Error, Config>;
  /** Fields with values that no configuration can hold. */
  blocked: readonly FieldProblem[];
  /** The slug of a stored server. */
  fixedSlug: string | undefined;
};

/**
 * Known problems of the configuration on screen: those found here, in the last attempt to save it and in the last check.
 * `isBlocked` while it cannot even be sent.
 */
export function useKnown({ config, judged, saving, blocked, fixedSlug }: Sources) {
  const { error, variables: refused, isPending, isSuccess } = saving;
  // A server that is just being stored takes its slug itself.
  const mayBeTaken = fixedSlug === undefined && !isPending && !isSuccess;
  return useMemo(() => {
    const checked = (list: 'problems' | 'warnings'): Findings[] =>
      judged ? [{ config: judged.config, list: judged.verdict[list] }] : [];
    const message = mayBeTaken ? judged?.verdict.slug_taken : undefined;
    const taken: Findings[] =
      judged && message !== undefined ? [{ config: judged.config, list: [{ path: 'slug', message }] }] : [];
    const refusal: Findings[] =
      error instanceof ApiProblem && refused ? [{ config: refused, list: error.problems }] : [];
    const own: Known[] = [...blocked, ...slugProblems(config, fixedSlug)];
    const isMoved = own.some(({ path }) => path === 'slug');
    const others = currentFindings([...refusal, ...checked('problems'), ...taken], config);
    return {
      problems: withoutTwins([...own, ...others.filter(({ path }) => !isMoved || path !== 'slug')]),
      warnings: currentFindings(checked('warnings'), config),
      isBlocked: own.length > 0,
    };
  }, [config, judged, error, refused, blocked, fixedSlug, mayBeTaken]);
}

/** The slug of a stored server cannot change, so this is the only problem of another one. */
function slugProblems({ slug }: Config, fixed: string | undefined): Known[] {
  if (fixed === undefined || slug === fixed) return [];
  return [{ path: 'slug', message: `a slug cannot be changed; allowed: "${fixed}", or create another server` }];
}
