import { LRUCache } from 'lru-cache';
import { viewSizes } from '../../domain/config/compiled-size.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import type { Tool } from '../../domain/config/tool.ts';
import type { View } from '../../domain/config/view.ts';

/** The compiled views of a server, and the tools that are compiled for them. */
export type ViewMemory<CompiledView, CompiledTool> = {
  view(name: string, view: View, make: () => CompiledView): CompiledView;
  tool(viewName: string, tool: Tool, make: () => CompiledTool): CompiledTool;
};

/**
 * Twenty views may fix an argument of the same large tool, so together they keep what the size of the server counts for
 * them. Beyond it, what was not used for longest is compiled again.
 */
export function createViewMemory<CompiledView extends object, CompiledTool extends object>(
  config: ServerConfig,
): ViewMemory<CompiledView, CompiledTool> {
  const sizes = viewSizes(config);
  const kept = new LRUCache<string, object>({ maxSize: sizes.room() });
  function remembered<Compiled extends object>(key: string, size: () => number, make: () => Compiled): Compiled {
    const known = kept.get(key) as Compiled | undefined;
    if (known) return known;
    const made = make();
    kept.set(key, made, { size: size() });
    return made;
  }
  return {
    view: (name, view, make) => remembered(name, () => sizes.ofView(view), make),
    tool: (viewName, tool, make) => remembered(`${viewName}/${tool.name}`, () => sizes.ofTool(tool), make),
  };
}
