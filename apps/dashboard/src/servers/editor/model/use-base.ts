import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api.ts';
import type { ServerDetail } from '../../../api-types.ts';
import { queryKeys } from '../../../query-keys.ts';
import { isEqual } from '../../../ui/actions/form-errors.ts';
import { type Config, isObject } from '../../config.ts';
import { createEditorStore } from './editor-store.ts';

/** Edit of a stored server, and the version that the edit is based on. */
export type Base = ReturnType<typeof useBase>;

export function useBase({ server, config: stored }: ServerDetail, edited: Config | undefined) {
  const client = useQueryClient();
  const { slug } = server;
  const [store] = useState(() => createEditorStore({ initial: stored, edited }));
  const [version, setVersion] = useState(server.version);
  const fetchLatest = async () => {
    const queryFn = () => api('getMcpServer', { slug });
    const detail = await client.fetchQuery({ queryKey: queryKeys.server(slug), queryFn, staleTime: 0 });
    setVersion(detail.server.version);
    return detail.config as Config;
  };
  return {
    store,
    version,
    /** Continues from the version that was just stored. */
    saved: async (sentConfig: Config) => store.saved(sentConfig, await fetchLatest()),
    /** Restarts from the latest version. The current edit is merged into it or discarded. */
    rebase: async (shouldKeepEdits: boolean) => {
      const theirs = await fetchLatest();
      const { initial, config } = store.getState();
      store.restart(shouldKeepEdits ? (merge(initial, config, theirs) as Config) : theirs, theirs);
    },
  };
}

/**
 * Merges two changes of one value. A subtree that only one side changed is taken from that side. If both changed the
 * same path, `mine` wins. Lists are merged entry by entry if they have the same length.
 */
function merge(base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isEqual(mine, base)) return theirs;
  if (isEqual(theirs, base)) return mine;
  if (isObject(base) && isObject(mine) && isObject(theirs)) {
    const names = new Set([...Object.keys(theirs), ...Object.keys(mine)]);
    const merged = [...names].map((name) => [name, merge(base[name], mine[name], theirs[name])] as const);
    return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
  }
  const lists = [base, mine, theirs].filter(Array.isArray);
  if (lists.length === 3 && lists.every(({ length }) => length === lists[0]?.length))
    return lists[1]?.map((entry: unknown, index) => merge(lists[0]?.[index], entry, lists[2]?.[index]));
  return mine;
}
