import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ServerDetail } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { queryKeys } from '../../../query-keys.ts';
import { type Config, isObject } from '../../config.ts';

/** The stored version that an edit began from. It changes only when the editor asks for it. */
export type Base = {
  config: Config;
  version: number;
  /** Grows when the editor has to start again. */
  generation: number;
  /** The edit that continues on another base. */
  kept: Config | undefined;
  /** Continues from the stored configuration; when it was edited meanwhile, only the version changes. */
  saved: (hasGoneOn: () => boolean) => Promise<void>;
  /** Starts from the newest version; `mine` continues as an edit of it. */
  rebase: (mine?: Config) => Promise<void>;
};

export function useBase(detail: ServerDetail): Base {
  const client = useQueryClient();
  const { slug } = detail.server;
  const [base, setBase] = useState(() => ({
    config: detail.config as Config,
    version: detail.server.version,
    generation: 0,
    kept: undefined as Config | undefined,
  }));
  const newest = () =>
    client.fetchQuery({
      queryKey: queryKeys.server(slug),
      queryFn: () => api('getMcpServer', { slug }),
      staleTime: 0,
    });
  const rebase = async (mine?: Config) => {
    const { config, server } = await newest();
    setBase(({ generation, config: before }) => ({
      config: config as Config,
      version: server.version,
      generation: generation + 1,
      kept: mine && (merge(before, mine, config) as Config),
    }));
  };
  const saved = async (hasGoneOn: () => boolean) => {
    const { config, server } = await newest();
    setBase(({ generation, kept }) => ({
      config: config as Config,
      version: server.version,
      ...(hasGoneOn() ? { generation, kept } : { generation: generation + 1, kept: undefined }),
    }));
  };
  return { ...base, rebase, saved };
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Merges two changes of one value: a part that only one side changed is taken from that side, and where both changed
 * the same path, `mine` wins. Lists are compared entry by entry while they have the same length.
 */
function merge(base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isSame(mine, base)) return theirs;
  if (isSame(theirs, base)) return mine;
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
