import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { localWorkspace } from '../config.ts';
import { createDataFolder } from '../data-folder.ts';
import { exampleSlug } from '../example-server.ts';
import type { Runner } from '../operations/run-operation.ts';
import { resourceFolder } from '../resource-folder.ts';
import { createPrivateFile } from '../store/engine/sqlite-file.ts';
import { findServer, isSlugTaken } from '../store/servers/servers.ts';

export type Example = { port: number; close(): Promise<void> };

/** Starts the example upstream, preferably on the port after the service's own, so that its URL stays the same. */
export async function startExampleUpstream(dataDir: string, preferredPort: number): Promise<Example> {
  const { startProjectsApi } = await import('../../../../examples/projects/upstream.ts');
  createDataFolder(dataDir);
  const file = join(dataDir, 'projects-example.sqlite');
  createPrivateFile(file);
  const host = '127.0.0.1';
  try {
    return await startProjectsApi({ host, port: preferredPort, file });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return startProjectsApi({ host, port: 0, file });
  }
}

/** Reads the configuration of the example server, with the upstream's port. */
function readExampleConfig(port: number): { tools: { url: string }[] } {
  const text = readFileSync(join(resourceFolder, 'examples', 'projects', 'server.json'), 'utf8');
  return JSON.parse(text.replaceAll('http://127.0.0.1:8081', `http://127.0.0.1:${port}`)) as {
    tools: { url: string }[];
  };
}

/**
 * Creates the example server in an empty service, and updates the upstream's port if it has changed. Does not recreate
 * a server that its owner deleted.
 */
export async function provideExampleServer(runner: Runner, port: number): Promise<void> {
  const runAsOperator = async (name: 'createMcpServer' | 'updateMcpServer', input: object) => {
    // Loaded on demand, because most starts change nothing.
    const { operations } = await import('../operations/index.ts');
    const { createOperatorActor } = await import('../operations/operation.ts');
    const { runOperation } = await import('../operations/run-operation.ts');
    const actor = createOperatorActor(localWorkspace.id);
    await runOperation(runner, operations[name], { actor, input, requestId: 'start' });
  };
  const config = readExampleConfig(port);
  const existing = await findServer(runner.db, localWorkspace.id, exampleSlug);
  if (!existing) {
    if (!(await isSlugTaken(runner.db, exampleSlug))) await runAsOperator('createMcpServer', config);
    return;
  }
  const origin = new URL(config.tools[0]?.url ?? '').origin;
  const isLocal = (url: string) => /^http:\/\/127\.0\.0\.1:\d+\//.test(url);
  if (existing.config.tools.every((tool) => !isLocal(tool.url) || tool.url.startsWith(`${origin}/`))) return;
  const tools = existing.config.tools.map((tool) => ({
    ...tool,
    url: tool.url.replace(/^http:\/\/127\.0\.0\.1:\d+/, origin),
  }));
  await runAsOperator('updateMcpServer', { slug: exampleSlug, tools });
}
