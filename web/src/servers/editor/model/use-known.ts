import type { UseMutationResult } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { FieldProblem, StoredServer } from '../../../answers.ts';
import { ApiProblem } from '../../../api.ts';
import type { Config } from '../../config.ts';
import { currentFindings, type Findings, type Known, withoutTwins } from './findings.ts';
import type { CheckedConfig } from './use-verdict.ts';

type Sources = {
  config: Config;
  checked: CheckedConfig | undefined;
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
export function useKnown({ config, checked, saving, blocked, fixedSlug }: Sources) {
  const { error, variables: refused, isPending, isSuccess } = saving;
  // A server that is just being stored takes its slug itself.
  const mayBeTaken = fixedSlug === undefined && !isPending && !isSuccess;
  return useMemo(() => {
    const findingsIn = (list: 'problems' | 'warnings'): Findings[] =>
      checked ? [{ config: checked.config, list: checked.verdict[list] }] : [];
    const message = mayBeTaken ? checked?.verdict.slug_taken : undefined;
    const taken: Findings[] =
      checked && message !== undefined ? [{ config: checked.config, list: [{ path: 'slug', message }] }] : [];
    const refusal: Findings[] =
      error instanceof ApiProblem && refused ? [{ config: refused, list: error.problems }] : [];
    const own: Known[] = [...blocked, ...slugProblems(config, fixedSlug)];
    const isMoved = own.some(({ path }) => path === 'slug');
    const others = currentFindings([...refusal, ...findingsIn('problems'), ...taken], config);
    return {
      problems: withoutTwins([...own, ...others.filter(({ path }) => !isMoved || path !== 'slug')]),
      warnings: currentFindings(findingsIn('warnings'), config),
      isBlocked: own.length > 0,
    };
  }, [config, checked, error, refused, blocked, fixedSlug, mayBeTaken]);
}

/** The slug of a stored server cannot change, so this is the only problem of another one. */
function slugProblems({ slug }: Config, fixed: string | undefined): Known[] {
  if (fixed === undefined || slug === fixed) return [];
  return [{ path: 'slug', message: `a slug cannot be changed; allowed: "${fixed}", or create another server` }];
}
