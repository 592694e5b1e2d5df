/**
 * Replaces `service.ts` for commits before that file existed, with the names that the bench had at 48122a62. The code of
 * the commit starts the service and chooses its core, so this file must not change.
 * Usage: node bench/service-of-48122a62.ts <origin of the upstream> <data folder> <core> <folder of the commit>
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MeasuredService } from './service.ts';

type Target = MeasuredService['targets']['call_1kb_key'];
type Service = { child: { pid: number }; url: string; key: string };
type Bench = {
  startService: (options: { dataDir: string; upstream: string }) => Promise<Service>;
  mcpTarget: (service: Service, slug: string, bearer: string, method: string, params: object) => Target;
  slugs: { keyed: string; open: string; large: string };
  toolName: (size: string) => string;
};

const [upstream = '', dataDir = '', , commit = ''] = process.argv.slice(2);
const moduleOf = (name: string) => import(pathToFileURL(join(commit, 'bench', name)).href);
const { startService, mcpTarget, slugs, toolName }: Bench = await moduleOf('toolhost-process.ts');
const { stopAll }: { stopAll: () => Promise<void> } = await moduleOf('processes.ts');
const token = 'token-of-a-caller';
const call = (size: string) => ({ name: toolName(size), arguments: { id: '7', limit: 20, status: 'active' } });

process.once('SIGTERM', () => void stopAll());
try {
  const service = await startService({ dataDir, upstream });
  const measured: MeasuredService = {
    pid: service.child.pid,
    targets: {
      call_1kb_key: mcpTarget(service, slugs.keyed, service.key, 'tools/call', call('1k')),
      call_1kb_token: mcpTarget(service, slugs.open, token, 'tools/call', call('1k')),
      call_20kb_key: mcpTarget(service, slugs.keyed, service.key, 'tools/call', call('20k')),
      list_200_tools: mcpTarget(service, slugs.large, token, 'tools/list', {}),
    },
  };
  console.log(JSON.stringify(measured));
} catch (error) {
  await stopAll();
  throw error;
}
