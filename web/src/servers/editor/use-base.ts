import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, path } from '../../api.ts';
import type { ServerDetail, StoredServer } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import type { Config } from '../config.ts';
import { merge } from './merge.ts';

/** The stored version that an edit began from. It moves only when the editor says so, never under its feet. */
export type Base = {
  config: Config;
  version: number;
  /** Grows when the editor has to begin anew. */
  generation: number;
  /** The edit that goes on over another base. */
  kept: Config | undefined;
  saved: (stored: StoredServer) => Promise<void>;
  /** Begins from the newest version; `mine` goes on as an edit of it. */
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
      queryFn: () => api<ServerDetail>('GET', path`/servers/${slug}`),
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
  return { ...base, rebase, saved: () => rebase() };
}
