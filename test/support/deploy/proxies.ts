import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../files.ts';
import { ensureProgram } from '../browser/ensure-program.ts';
import { eventually } from '../eventually.ts';
import { freshRequest } from '../fresh-request.ts';
import { readBlocks } from '../pages/blocks.ts';
import { findFreePort } from '../upstreams/listener.ts';

export type RunningProxy = {
  name: string;
  url: string;
  output(): string;
  reload(change: (text: string) => string): void;
  stop(): Promise<void>;
};

type ProxyKind = {
  paths: readonly [string, ...string[]];
  debianPackage: string;
  /** Configuration file below `deploy/proxies`. */
  file: string;
  args: (file: string, folder: string) => string[];
  /** Adapts the configuration to a loopback port without TLS. Raises health timeouts so a slow replica stays healthy. */
  localize: (text: string, port: number, folder: string) => string;
};

const proxyKinds: Record<string, ProxyKind> = {
  nginx: {
    paths: ['/usr/sbin/nginx', '/opt/homebrew/bin/nginx'],
    debianPackage: 'nginx-light',
    file: 'nginx.conf',
    args: (file, folder) => ['-p', folder, '-c', file],
    localize: (text, port, folder) => {
      const site = text.replace('listen 443 ssl;', `listen 127.0.0.1:${port};`).replaceAll(/^ *ssl_.*\n/gm, '');
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => {
        mkdirSync(join(folder, kind));
        return `${kind}_temp_path ${join(folder, kind)};`;
      });
      return `daemon off; pid ${folder}/pid; error_log stderr; events {}\nhttp { access_log off; ${paths.join(' ')}\n${site} }\n`;
    },
  },
  caddy: {
    paths: ['/usr/bin/caddy', '/opt/homebrew/bin/caddy'],
    debianPackage: 'caddy',
    file: 'Caddyfile',
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    localize: (text, port) =>
      `{\n  admin off\n}\n${text
        .replace(/^tools\.example\.com/m, `http://tools.example.com:${port}`)
        .replace('health_timeout 2s', 'health_timeout 60s')}`,
  },
  haproxy: {
    paths: ['/usr/sbin/haproxy', '/opt/homebrew/bin/haproxy'],
    debianPackage: 'haproxy',
    file: 'haproxy.cfg',
    args: (file) => ['-db', '-f', file],
    localize: (text, port) =>
      text.replace(/bind :443 .*/, `bind 127.0.0.1:${port}`).replace(/^defaults$/m, '$&\n  timeout check 60s'),
  },
};

/** Text of each configuration that the block in docs/operations/proxies.md replaces if the service is below `/hub`. */
const replacedBlocks: Record<string, RegExp> = { nginx: /^ *location \/ \{\n/m, caddy: /^ *reverse_proxy .*\n/m };

/** Starts a proxy with its configuration from `deploy/proxies` in front of the replicas at these ports. */
export async function startProxy(
  name: string,
  ports: readonly number[],
  path: '' | '/hub' = '',
): Promise<RunningProxy> {
  const { paths, debianPackage, file: source, args, localize } = proxyKinds[name] as ProxyKind;
  const program = await ensureProgram(paths, debianPackage);
  const folder = mkdtempSync(join(tmpdir(), `toolhost-${name}-`));
  const pathBlock = readBlocks('docs/operations/proxies.md').find(({ language }) => language === name);
  const hostConfiguration = readFileSync(join(root, 'deploy', 'proxies', source), 'utf8');
  const configuration =
    path === ''
      ? hostConfiguration
      : hostConfiguration
          .replace(replacedBlocks[name] ?? '', pathBlock?.text ?? '')
          .replace('/metrics', '/hub/metrics');
  const port = await findFreePort();
  const [first, second] = ports;
  const localConfiguration = localize(configuration, port, folder).replaceAll('10.0.0.7:8080', `127.0.0.1:${first}`);
  const text =
    second === undefined
      ? localConfiguration.replaceAll(/^ *server .*10\.0\.0\.8.*\n| 10\.0\.0\.8:8080/gm, '')
      : localConfiguration.replaceAll('10.0.0.8:8080', `127.0.0.1:${second}`);
  const file = join(folder, 'configuration');
  writeFileSync(file, text);
  const child: ChildProcess = spawn(program, args(file, folder), {
    env: { PATH: process.env.PATH ?? '', HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderrText = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderrText += chunk.toString();
  });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`${name} did not start: ${stderrText}`);
    const { status } = await freshRequest(`${url}${path}/readyz`, { headers: { host: 'tools.example.com' } });
    if (status !== 200) throw new Error(`${name} responds with ${status}: ${stderrText}`);
  }, 60_000);
  return {
    name,
    url,
    output: () => stderrText,
    reload(change) {
      writeFileSync(file, change(text));
      child.kill('SIGHUP');
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
