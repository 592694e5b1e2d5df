import { useCallback, useMemo, useState } from 'react';
import type { FieldProblem } from '../../../answers.ts';

/** Messages about fields whose values the configuration cannot hold yet, by path. */
export function useBlocks() {
  const [blocks, setBlocks] = useState<ReadonlyMap<string, string>>(new Map());
  const block = useCallback((path: string, message: string | undefined) => {
    setBlocks((before) => {
      const next = new Map(before);
      if (message === undefined) next.delete(path);
      else next.set(path, message);
      return next;
    });
  }, []);
  const blocked: readonly FieldProblem[] = useMemo(
    () => [...blocks].map(([path, message]) => ({ path, message })),
    [blocks],
  );
  return { block, blocked };
}
