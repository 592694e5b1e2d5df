import type { ServerConfig } from '../../domain/config/server-config.ts';
import { annotationsOf, reservedToolNames, type ToolMode } from '../../domain/config/tool.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems.ts';
import { searchToolNames, type ToolDefinition } from '../../domain/search/own-tools.ts';
import type { OfferedTools, Served } from '../../domain/try-out.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { AppError } from '../../errors.ts';
import { compileServer, type HostedServer, serverOrView } from './hosted-server.ts';
import type { HostedServers } from './hosted-servers.ts';

/** Finds a server or one of its views, in the requested mode and version. @throws AppError notFound */
export async function findServed(servers: HostedServers, served: Served): Promise<HostedServer> {
  const whole = await servers.find(served.slug);
  if (!whole) throw new AppError('notFound', 'there is no such server');
  const server = serverOrView(await variantOf(servers, whole, served), served.view);
  if (server) return server;
  const near = nearestOrAll(String(served.view), Object.keys(whole.config.views ?? {}), newGuesses());
  throw new AppError('notFound', `the server has no view ${JSON.stringify(served.view)}${near}`);
}

async function variantOf(servers: HostedServers, whole: HostedServer, served: Served): Promise<HostedServer> {
  const { view, mode, older } = served;
  if (mode === undefined && !older) return whole;
  const key = JSON.stringify([view, mode, older?.version]);
  return servers.variant(whole, key, () => {
    const config = older?.config ?? whole.config;
    const wanted = mode === undefined ? config : inMode(config, view, mode);
    const { captureUntil, ...source } = whole;
    const made = { ...source, version: 0, config: wanted, ...(captureUntil !== undefined && { captureUntil }) };
    return compileServer(made, whole.secrets, whole.limits, whole.userAgent);
  });
}

function inMode(config: ServerConfig, view: string | undefined, mode: ToolMode): ServerConfig {
  const { views = {} } = config;
  const changed = view !== undefined && Object.hasOwn(views, view) && { [view]: { ...views[view], tool_mode: mode } };
  return { ...config, tool_mode: mode, views: { ...views, ...changed } };
}

/** Maximum size of a tool list for a model, in bytes. No model accepts more. */
export const mostOfferedBytes = 1024 * 1024;

/**
 * Returns the tools of a server for a model. @throws AppError notFound; tooLarge if the list is longer than models
 * accept
 */
export async function offeredTools(servers: HostedServers, served: Served): Promise<OfferedTools> {
  const server = await findServed(servers, served);
  const { config, catalogue } = server;
  const list = server.toolsJson();
  if (list.length > mostOfferedBytes)
    throw new AppError(
      'tooLarge',
      `the tool list has ${list.length} bytes, which is more than models accept; allowed: ${mostOfferedBytes}; choose a view, or use tool mode "search"`,
    );
  await nextTurn();
  return {
    instructions: server.instructions,
    tools: JSON.parse(String(list)) as ToolDefinition[],
    isReading(tool, args) {
      const name = tool === searchToolNames.call && catalogue ? args.name : tool;
      const found = config.tools.find((one) => one.name === name);
      return found ? annotationsOf(found).readOnlyHint === true : reservedToolNames(config).has(String(name));
    },
  };
}
