import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Child, cores, findProgram, node, startChild } from './processes.ts';

/** Processes with which the service is compared. */
export type References = { upstream: Child; relay: Child; nginx: (Child & { url: string }) | undefined };

const ready = /^ready (\S+)$/m;

export async function startReferences(folder: string): Promise<References> {
  const script = (name: string) => join(import.meta.dirname, name);
  const upstream = await startChild([node, script('upstream.ts')], { core: cores.load, ready });
  const relay = await startChild([node, script('relay.ts'), upstream.ready], { core: cores.service, ready });
  return { upstream, relay, nginx: await startNginx(folder, new URL(upstream.ready).port) };
}

/** Starts nginx with one worker, keep-alive connections to the upstream, and no logs. */
async function startNginx(folder: string, upstreamPort: string): Promise<References['nginx']> {
  const nginx = findProgram('nginx');
  if (nginx === undefined) return undefined;
  const port = await findFreePort();
  const config = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => {
    mkdirSync(join(folder, kind), { recursive: true });
    return `${kind}_temp_path ${join(folder, kind)};`;
  });
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${join(folder, 'nginx.pid')}; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; ${temporary.join(' ')}
  upstream api { server 127.0.0.1:${upstreamPort}; keepalive 128; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location = /ready { return 200; }
    location / {
      proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_method GET; proxy_pass_request_body off; proxy_set_header Content-Length "";
    }
  }
}
`,
  );
  // nginx prints nothing when it is ready, so a shell prints the line and becomes nginx. `/ready` shows that it listens.
  const child = await startChild(['sh', '-c', 'echo ready; exec "$0" "$@"', nginx, '-c', config], {
    core: cores.service,
    ready: /^(ready)$/m,
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilReady(`${url}/ready`);
  return { ...child, url };
}

function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

async function waitUntilReady(url: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const isUp = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`No server is listening at ${url}.`);
}
