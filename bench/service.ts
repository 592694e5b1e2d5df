/**
 * Starts the service of this checkout for `--against` in this or another checkout. README.md lists what must not change.
 * Usage: node bench/service.ts <origin of the upstream> <data folder> [core of the service]
 */
import type { Target } from './load.ts';
import { stopAll } from './processes.ts';
import { mcpTarget, slugs, startService, toolName } from './toolhost-process.ts';

/** Measured process, and the requests that the load sends to it. */
export type MeasuredService = {
  pid: number;
  targets: { [Row in 'call_1kb_key' | 'call_1kb_token' | 'call_20kb_key' | 'list_200_tools']: Target };
};

const [upstream = '', dataDir = '', core] = process.argv.slice(2);
const token = 'token-of-a-caller';
const call = (size: string) => ({ name: toolName(size), arguments: { id: '7', limit: 20, status: 'active' } });

process.once('SIGTERM', () => void stopAll());
try {
  const service = await startService({ dataDir, upstream, core: core === undefined ? undefined : Number(core) });
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
