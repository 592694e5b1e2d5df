import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ServerDetail } from '../../answers.ts';
import { api } from '../../api.ts';
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
  /** Goes on from what was stored; over an edit that has gone on meanwhile only the version changes. */
  saved: (hasGoneOn: () => boolean) => Promise<void>;
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
