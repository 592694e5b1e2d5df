import { AppError } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { searchToolNames, type ToolDefinition } from '@toolhost/tool-config/built-in-tools';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { getAnnotations, getReservedToolNames, type ToolMode } from '@toolhost/tool-config/tool';
import type { ExposedTools, ServedVariant } from '../../try-out.ts';
import { compileServer, getServerOrView, type HostedServer } from './hosted-server.ts';
import type { HostedServers } from './hosted-servers.ts';

/** Finds the variant of a server or view that a try-out or the playground requests. @throws AppError notFound */
export async function findVariant(servers: HostedServers, variant: ServedVariant): Promise<HostedServer> {
  const baseServer = await servers.find(variant.slug);
  if (!baseServer) throw new AppError('notFound', 'there is no such server');
  const server = getServerOrView(await compileVariant(servers, baseServer, variant), variant.view);
  if (server) return server;
  const suggestions = suggestNearestOrList(
    String(variant.view),
    Object.keys(baseServer.config.views ?? {}),
    createSuggestionBudget(),
  );
  throw new AppError('notFound', `the server has no view ${JSON.stringify(variant.view)}${suggestions}`);
}

async function compileVariant(
  servers: HostedServers,
  baseServer: HostedServer,
  variant: ServedVariant,
): Promise<HostedServer> {
  const { view, mode, olderVersion } = variant;
  if (mode === undefined && !olderVersion) return baseServer;
  const key = JSON.stringify([view, mode, olderVersion?.version]);
  return servers.getVariant(baseServer, key, () => {
    const config = olderVersion?.config ?? baseServer.config;
    const variantConfig = mode === undefined ? config : withToolMode(config, view, mode);
    // Only `serverInfo` contains the version, and no client connects to a variant.
    const definition = { ...baseServer, version: 0, config: variantConfig };
    return compileServer(definition, baseServer.secrets, baseServer.limits, baseServer.userAgent);
  });
}

function withToolMode(config: ServerConfig, view: string | undefined, mode: ToolMode): ServerConfig {
  const { views = {} } = config;
  const changedView = view !== undefined &&
    Object.hasOwn(views, view) && { [view]: { ...views[view], tool_mode: mode } };
  return { ...config, tool_mode: mode, views: { ...views, ...changedView } };
}

/** Maximum size of a tool list for a model, in bytes. No model accepts more. */
export const maxToolListBytes = 1024 * 1024;

/**
 * Returns the tools of a server for a model. @throws AppError notFound; tooLarge if the list is longer than models
 * accept
 */
export async function getExposedTools(servers: HostedServers, variant: ServedVariant): Promise<ExposedTools> {
  const server = await findVariant(servers, variant);
  const { config, catalog } = server;
  const list = server.getToolsJson();
  if (list.length > maxToolListBytes)
    throw new AppError(
      'tooLarge',
      `the tool list has ${list.length} bytes, which is more than models accept; allowed: ${maxToolListBytes}; choose a view, or use tool mode "search"`,
    );
  await yieldToEventLoop();
  return {
    instructions: server.instructions,
    tools: JSON.parse(String(list)) as ToolDefinition[],
    isReadOnly(tool, args) {
      const name = tool === searchToolNames.call && catalog ? args.name : tool;
      const calledTool = config.tools.find((configuredTool) => configuredTool.name === name);
      return calledTool
        ? getAnnotations(calledTool).readOnlyHint === true
        : getReservedToolNames(config).has(String(name));
    },
  };
}
