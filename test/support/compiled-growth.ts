import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { getCompiledSize, measureInterpolation } from '@toolhost/tool-config/sizes';
import { compileServer } from '../../apps/server/src/gateway/hosted/hosted-server.ts';
import { measureReachableBytes } from './collect-garbage.ts';

/**
 * Compiles the configuration that the parent sends, with every tool of the server and of each view, and checks a text
 * against the patterns of each tool. Replies with the memory that this took and the size that the service counted for
 * it, both in bytes. The first run only warms up.
 */
process.on('message', (configText: string) => {
  const measureGrowth = () => {
    const before = measureReachableBytes();
    const config = JSON.parse(configText) as ServerConfig;
    const limits = { callsPerSecond: 0, concurrentCalls: 0 };
    const source = { id: 'id', workspaceId: 'workspace', slug: 'slug', version: 1, config };
    const server = compileServer(source, new Map(), { server: limits, workspace: limits }, 'test');
    const views = Object.keys(config.views ?? {}).map((name) => server.findView(name));
    for (const compiled of [server, ...views]) {
      compiled?.getToolsJson();
      for (const { name } of compiled?.config.tools ?? []) {
        try {
          compiled?.getTool(name)?.args.check({ a: 'no pattern fits this' }, 1e9);
        } catch {
          // A text that does not match has still been checked against every pattern.
        }
      }
    }
    const after = measureReachableBytes();
    return {
      grown: after - before,
      counted: 10 * getCompiledSize(config, measureInterpolation(config)),
      kept: [server, views].length,
    };
  };
  measureGrowth();
  process.send?.(measureGrowth());
});
