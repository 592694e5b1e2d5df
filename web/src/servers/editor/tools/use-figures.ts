import { useQuery } from '@tanstack/react-query';
import type { ToolFigures } from '../../../answers.ts';
import { api } from '../../../api.ts';
import { queryKeys } from '../../../query-keys.ts';
import { textOf } from '../../config.ts';
import { useEditor } from '../model/editor-context.ts';

export type FiguresByTool = ReadonlyMap<string, ToolFigures>;

const none: FiguresByTool = new Map();

function byTool({ tools }: { tools: readonly ToolFigures[] }): FiguresByTool {
  return new Map(tools.map((figures) => [figures.tool, figures]));
}

/** What is known of the stored tools: their tokens, and their calls of the last 24 hours. */
export function useFigures(): FiguresByTool {
  const { initial, isNew } = useEditor();
  const slug = textOf(initial.slug);
  const { data = none } = useQuery({
    queryKey: [...queryKeys.server(slug), 'figures'],
    queryFn: ({ signal }) => api('getToolActivity', { slug }, { signal }),
    select: byTool,
    enabled: !isNew,
    refetchInterval: 30_000,
  });
  return data;
}
