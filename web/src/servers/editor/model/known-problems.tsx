import type { UseMutationResult } from '@tanstack/react-query';
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react';
import type { StoredServer } from '../../../answers.ts';
import { type Config, sameJson } from '../../config.ts';
import { FindingsProvider, useEdited } from './editor-context.ts';
import type { Known } from './findings.ts';
import { useBlocks } from './use-blocks.ts';
import { useKnown } from './use-known.ts';
import { useVerdict } from './use-verdict.ts';

/** Where the check of the configuration stands. */
type Checking = {
  problems: readonly Known[];
  warnings: readonly Known[];
  isBehind: boolean;
  isBlocked: boolean;
  isRevealed: boolean;
  reveal: () => void;
};

const Context = createContext<Checking | undefined>(undefined);

export function useChecking(): Checking {
  const checking = useContext(Context);
  if (!checking) throw new Error('there is no editor around this field');
  return checking;
}

type Props = {
  isNew: boolean;
  saving: UseMutationResult<StoredServer, Error, Config>;
  /** The slug of a stored server. */
  fixedSlug: string | undefined;
  children: ReactNode;
};

/** Knows the problems of what is on screen. It follows every letter; what is inside follows only what it finds. */
export function KnownProblems({ isNew, saving, fixedSlug, children }: Props) {
  const config = useEdited((state) => state.config);
  const { checked, isBehind } = useVerdict();
  const { block, blocked } = useBlocks();
  const { isBlocked, ...known } = useKnown({ config, checked, saving, blocked, fixedSlug });
  const [problems, warnings] = [useSame(known.problems), useSame(known.warnings)];
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isRevealed, setRevealed] = useState(!isNew);
  const touch = useCallback((path: string) => setTouched((before) => new Set([...before, path])), []);
  const reveal = useCallback(() => setRevealed(true), []);
  const findings = useMemo(() => {
    const isShown = (path: string) => isRevealed || touched.has(path);
    return { problems, warnings, touch, isShown, block };
  }, [problems, warnings, touched, isRevealed, touch, block]);
  const checking = useMemo(
    () => ({ problems, warnings, isBehind, isBlocked, isRevealed, reveal }),
    [problems, warnings, isBehind, isBlocked, isRevealed, reveal],
  );
  return (
    <FindingsProvider value={findings}>
      <Context value={checking}>{children}</Context>
    </FindingsProvider>
  );
}

/** The value as it was while it says the same. */
function useSame<Value>(next: Value): Value {
  const [kept, keep] = useState(next);
  if (sameJson(kept, next)) return kept;
  keep(next);
  return next;
}
