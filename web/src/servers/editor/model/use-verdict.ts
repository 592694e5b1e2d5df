import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, type UseMutationResult, useQuery } from '@tanstack/react-query';
import { useId, useLayoutEffect } from 'react';
import type { StoredServer } from '../../../answers.ts';
import { ApiProblem, api } from '../../../api.ts';
import { type Config, unchecked } from '../../config.ts';
import { useEdited, useEditor } from './editor-context.ts';

export type Saving = UseMutationResult<StoredServer, Error, Config>;

/** Validates the current configuration with the service after 300 ms without input. */
export function useVerdict({ error, variables, isPending, isSuccess }: Saving): void {
  const { store, isNew } = useEditor();
  const now = useEdited(({ config, changes }) => ({ config, changes }));
  const [settled] = useDebouncedValue(now, 300);
  // The change counter identifies a configuration. Hashing a long configuration on every keystroke would be slow.
  const editor = useId();
  const { data: checked, isFetching } = useQuery({
    queryKey: ['verdict', editor, settled.changes],
    queryFn: async ({ signal }) => ({
      config: settled.config,
      verdict: await api('checkMcpServer', unchecked(settled.config), { signal }),
    }),
    placeholderData: keepPreviousData,
    // Otherwise each response is compared with the previous one, tool by tool.
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
