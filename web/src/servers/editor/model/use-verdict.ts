import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState } from 'react';
import type { Verdict } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { type Config, unchecked } from '../../config.ts';
import { useEdited, useEditor } from './editor-context.ts';

/** A verdict with its configuration, which may be older than the one on screen. */
export type CheckedConfig = { config: Config; verdict: Verdict };

const pauseMs = 300;

/** The configuration when nothing was typed for a moment, and how many such moments there were. */
function useSettled(): { config: Config; moment: number } {
  const { store } = useEditor();
  const [settled, setSettled] = useState(() => ({ config: store.now().config, moment: 0 }));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const settle = () =>
      setSettled((before) => {
        const { config } = store.now();
        return config === before.config ? before : { config, moment: before.moment + 1 };
      });
    const stop = store.subscribe(() => {
      clearTimeout(timer);
      timer = setTimeout(settle, pauseMs);
    });
    settle();
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [store]);
  return settled;
}

/** The verdict of the service on a configuration while it is edited. `isBehind` while it is about an older one. */
export function useVerdict(): { checked: CheckedConfig | undefined; isBehind: boolean } {
  const settled = useSettled();
  // Its place in this editor names a configuration; the text of a long one would be read with every letter.
  const editor = useId();
  const query = useQuery({
    queryKey: ['verdict', editor, settled.moment],
    queryFn: async ({ signal }): Promise<CheckedConfig> => ({
      config: settled.config,
      verdict: await api('checkMcpServer', unchecked(settled.config), { signal }),
    }),
    placeholderData: keepPreviousData,
    // Otherwise every answer is compared with the one before, tool by tool.
    structuralSharing: false,
    staleTime: 60_000,
    gcTime: 0,
  });
  const isSettled = useEdited(({ config }) => config === settled.config);
  return { checked: query.data, isBehind: !isSettled || query.isFetching };
}
