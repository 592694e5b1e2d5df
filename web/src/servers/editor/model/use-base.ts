import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ServerDetail } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { queryKeys } from '../../../query-keys.ts';
import type { Config } from '../../config.ts';
import { merge } from './merge.ts';

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
