import { startProjectsApi } from './upstream.ts';

const file = process.argv[2] ?? ':memory:';
const api = await startProjectsApi({ host: '127.0.0.1', port: Number(process.env.PORT ?? 8081), file });
process.stdout.write(`projects example ready ${api.url}/rest/v1/projects (rows in ${file})\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => api.close());
