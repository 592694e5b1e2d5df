/**
 * `npm run dev`: starts the service, which restarts when its sources change, behind a dashboard with hot reload. Both
 * are served from the dashboard's origin, so that sign-in and origin checks work as in production.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createServer } from 'vite';

const servicePort = Number(process.env.PORT ?? 8080);
const dashboardPort = 5173;
const root = join(import.meta.dirname, '..', '..');
const service = `http://127.0.0.1:${servicePort}`;
/** Paths that Vite proxies to the service. */
const proxiedPaths = [
  '/api',
  '/login',
  '/logout',
  '/local-identity',
  '/mcp',
  '/.well-known',
  '/schema',
  '/livez',
  '/readyz',
  '/metrics',
];

const vite = await createServer({
  configFile: join(import.meta.dirname, 'vite.config.ts'),
  server: {
    host: '127.0.0.1',
    port: dashboardPort,
    strictPort: true,
    proxy: Object.fromEntries(proxiedPaths.map((path) => [`^${path}(/|\\?|$)`, { target: service }])),
  },
});
await vite.listen();
const child = spawn(
  process.execPath,
  [
    '--watch',
    '--watch-path',
    join(root, 'apps', 'server'),
    '--watch-path',
    join(root, 'packages'),
    '--watch-preserve-output',
    'apps/cli/src/main.ts',
    'serve',
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PORT: String(servicePort), BASE_URL: `http://127.0.0.1:${dashboardPort}` },
  },
);
process.stderr.write(`dashboard with hot reload: http://127.0.0.1:${dashboardPort}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
child.on('exit', async (code) => {
  await vite.close();
  process.exit(code ?? 0);
});
