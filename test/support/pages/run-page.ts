import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { localWorkspace } from '../../../apps/server/src/config.ts';
import { root } from '../../files.ts';
import { startToolhost } from '../toolhost/toolhost.ts';
import { buildServerAt } from '../upstream-configs.ts';
import { findFreePort } from '../upstreams/listener.ts';
import type { RecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type Block, getPreparation } from './blocks.ts';

/** Time limit of a whole page, which only a hanging command reaches. */
const pageTimeoutMs = 600_000;

/**
 * Runs the blocks of a page in order in one shell, as a reader would. The service has the worked example and a server
 * `my-server` with a secret SERVICE_KEY and a view. Returns the failure, if any, with its line.
 */
export async function runPage(blocks: readonly Block[], upstream: RecordingUpstream): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-page-'));
  for (const name of ['bin', 'deploy', 'docs', 'examples', 'node_modules'])
    symlinkSync(join(root, name), join(folder, name));
  const data = join(folder, 'data');
  mkdirSync(data);
  const service = await startToolhost({ dataDir: data, env: { DEMO: '1' }, egressPorts: [upstream.port] });
  try {
    const authentication = { type: 'Bearer', token: '{{SERVICE_KEY}}' };
    const views = { support: { tools: ['get'] } };
    await service.createServer(buildServerAt('my-server', upstream.url, { authentication, views }));
    const key = await service.createKey();
    const { keys } = (await service.rest('GET', '/keys')).body as { keys: { id: string }[] };
    const { config } = (await service.rest('GET', '/servers/projects')).body as {
      config: { tools: { url: string }[] };
    };
    const example = new URL(config.tools[0]?.url ?? '').host;
    const replacements = new Map<string, string>([
      ['http://127.0.0.1:8080', service.url],
      ['127.0.0.1:8081/openapi.json', `${example}/openapi.json`],
      ['https://tools.example.com', service.url],
      ['https://mcp.example.com/mcp', `${service.url}/mcp/projects`],
      ['127.0.0.1:8090', `127.0.0.1:${await findFreePort()}`],
      ['8081', String(await findFreePort())],
      ['https://api.example.com', upstream.url],
      ['127.0.0.1:8000', `127.0.0.1:${upstream.port}`],
      ['127.0.0.1:3000', `127.0.0.1:${upstream.port}`],
      ['https://api.github.com', upstream.url],
      ['TOOLHOST_API_KEY=…', `TOOLHOST_API_KEY=${key}`],
      ['wsp_…', localWorkspace.id],
      ['key_…', keys[0]?.id ?? ''],
    ]);
    const env = {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      HOME: folder,
      DATA_DIR: data,
      EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
      TOOLHOST_URL: service.url,
      TOOLHOST_API_KEY: key,
    };
    return (await runBlocks(blocks, { replacements, cwd: folder, env })).failure;
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export type Shell = { replacements: ReadonlyMap<string, string>; cwd: string; env: Record<string, string> };

/** Runs the blocks of a page in one shell. Returns the output, and the failure, if any, with its line. */
export async function runBlocks(
  blocks: readonly Block[],
  shell: Shell,
): Promise<{ stdout: string; failure: string | undefined }> {
  const script = blocks
    .map((block) => `echo "@line ${block.line}"\n${getPreparation(block)}\n${block.text}`)
    .join('\n');
  const { code, stdout, stderr } = await runShell(script, shell);
  // curl exits with 0 even if a tool call failed.
  if (code === 0 && !/"isError":true|"error":\{"code":/.test(stdout)) return { stdout, failure: undefined };
  const line = [...stdout.matchAll(/^@line (\d+)$/gm)].at(-1)?.[1];
  const failure = `${blocks[0]?.page}:${line} exits with ${code}\n${stdout.slice(-1500)}\n${stderr.slice(-1500)}`;
  return { stdout, failure };
}

/** Starts commands in a separate process group. Runs the sources in place of the published package. */
export function startShell(script: string, { replacements, cwd, env }: Shell) {
  const localScript = script
    .replaceAll(/^(.*)npx toolhost serve$/gm, 'npm ci\n$1npm start')
    .replaceAll('npx toolhost', 'bin/toolhost')
    // Replaces all words in one pass, so none matches inside a replacement, such as 8081 in a port 38081.
    .replaceAll(
      new RegExp([...replacements.keys()].map((placeholder) => placeholder.replaceAll('.', '\\.')).join('|'), 'g'),
      (placeholder) => replacements.get(placeholder) ?? '',
    );
  return spawn('/bin/sh', ['-eu', '-c', localScript], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Runs commands. Kills a command that does not exit, and every process that a command leaves behind. */
async function runShell(script: string, shell: Shell) {
  const child = startShell(script, shell);
  const killAll = () => signalProcessGroup(child, 'SIGKILL');
  const timer = setTimeout(killAll, pageTimeoutMs);
  child.once('exit', killAll);
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  clearTimeout(timer);
  return { code, stdout, stderr };
}

/** Sends a signal to a shell and to all processes that it started, if any still runs. */
export function signalProcessGroup({ pid = 0 }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
