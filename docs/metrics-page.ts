import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const introduction = `Metrics of \`/metrics\`; [observability](../operations/observability.md) explains them. A histogram \`name\` has the series \`name_bucket\`, \`name_sum\`, and \`name_count\`. If several processes share a port, the response includes all of them.

| metric | type | description |
|---|---|---|
`;

/** Converts a scrape to table rows, `| \`name\` | type | help |`, sorted by name. */
export function metricRows(text: string): string[] {
  return [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm)]
    .map(([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`)
    .toSorted();
}

/** Generates the metrics page from a service that it starts in local mode. */
export async function metricsPage(generated: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-metrics-'));
  const program = join(import.meta.dirname, '..', 'bin', 'toolhost');
  const service = spawn(program, ['serve'], {
    env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: folder, DEMO: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(service, 'exit');
  try {
    for await (const line of createInterface(service.stdout)) {
      const [, url] = /^toolhost ready (\S+)$/.exec(line) ?? [];
      if (url === undefined) continue;
      const text = await (await fetch(`${url}/metrics`)).text();
      return `# Metrics\n${generated}\n${introduction}${metricRows(text).join('\n')}\n`;
    }
    throw new Error('the service did not start; run bin/toolhost serve to see the reason');
  } finally {
    service.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}
