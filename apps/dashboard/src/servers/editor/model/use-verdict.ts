import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, type UseMutationResult, useQuery } from '@tanstack/react-query';
import { useId, useLayoutEffect } from 'react';
import { ApiProblem, api } from '../../../api.ts';
import type { StoredServer } from '../../../api-types.ts';
import { asInput, type Config } from '../../config.ts';
import { useEditor, useEditorState } from './editor-context.ts';

export type Saving = UseMutationResult<StoredServer, Error, Config>;

/** Validates the current configuration with the service after 300 ms without input. */
export function useVerdict({ error, variables, isPending, isSuccess }: Saving): void {
  const { store, isNew } = useEditor();
  const current = useEditorState(({ config, revision }) => ({ config, revision }));
  const [settled] = useDebouncedValue(current, 300);
  // The revision identifies the configuration, because hashing a long one on every keystroke would be slow.
  const editor = useId();
  const { data: lastCheck, isFetching } = useQuery({
    queryKey: ['verdict', editor, settled.revision],
    queryFn: async ({ signal }) => ({
      config: settled.config,
      verdict: await api('checkMcpServer', asInput(settled.config), { signal }),
    }),
    placeholderData: keepPreviousData,
    // Structural sharing would compare each response with the previous one, tool by tool.
    structuralSharing: false,
    staleTime: 60_000,
    gcTime: 0,
  });
  const isStale = current.revision !== settled.revision || isFetching;
  const mayBeTaken = isNew && !isPending && !isSuccess;
  useLayoutEffect(() => {
    const rejection =
      error instanceof ApiProblem && variables ? { config: variables, list: error.problems } : undefined;
    store.applyVerdict({ lastCheck, rejection, mayBeTaken, isStale });
  }, [store, lastCheck, error, variables, mayBeTaken, isStale]);
}
