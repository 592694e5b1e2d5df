import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, type UseMutationResult, useQuery } from '@tanstack/react-query';
import { useId, useLayoutEffect } from 'react';
import type { StoredServer } from '../../../answers.ts';
import { ApiProblem, api } from '../../../api.ts';
import { type Config, unchecked } from '../../config.ts';
import { useEdited, useEditor } from './editor-context.ts';

export type Saving = UseMutationResult<StoredServer, Error, Config>;

/** Asks the service about the configuration on screen when nothing was typed for a moment. */
export function useVerdict({ error, variables, isPending, isSuccess }: Saving): void {
  const { store, isNew } = useEditor();
  const now = useEdited(({ config, changes }) => ({ config, changes }));
  const [settled] = useDebouncedValue(now, 300);
  // Its place in this editor names a configuration; the text of a long one would be read with every letter.
  const editor = useId();
  const { data: checked, isFetching } = useQuery({
    queryKey: ['verdict', editor, settled.changes],
    queryFn: async ({ signal }) => ({
      config: settled.config,
      verdict: await api('checkMcpServer', unchecked(settled.config), { signal }),
    }),
    placeholderData: keepPreviousData,
    // Otherwise every answer is compared with the one before, tool by tool.
    structuralSharing: false,
    staleTime: 60_000,
    gcTime: 0,
  });
  const isBehind = now.changes !== settled.changes || isFetching;
  const mayBeTaken = isNew && !isPending && !isSuccess;
  useLayoutEffect(() => {
    const refused = error instanceof ApiProblem && variables ? { config: variables, list: error.problems } : undefined;
    store.learn({ checked, refused, mayBeTaken, isBehind });
  }, [store, checked, error, variables, mayBeTaken, isBehind]);
}
