import assert from 'node:assert/strict';
import type { shedKinds } from '@toolhost/limits/memory-budget';

/** Response of `/metrics`, parsed as strictly as by Prometheus. */
export type ParsedMetrics = {
  text: string;
  families: Map<string, { type: string; help: string; labels: Set<string> }>;
  /** Returns the value of the only line with a name and labels. */
  value(name: string, labels?: Record<string, string>): number;
  /** Returns the sum of all lines of a name that have these labels. */
  sum(name: string, labels?: Record<string, string>): number;
  /** Returns the cumulative counts of a histogram, by upper bound. */
  buckets(name: string): [number, number][];
};

type MetricLine = { name: string; labels: Record<string, string>; value: number };

const linePattern = /^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[\d.e+-]+|NaN|[+-]Inf)$/;

export function parseMetrics(text: string): ParsedMetrics {
  assert.ok(text.endsWith('\n'));
  const families: ParsedMetrics['families'] = new Map();
  const lines: MetricLine[] = [];
  let current = '';
  for (const row of text.trimEnd().split('\n')) {
    const [, kind, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(row) ?? [];
    if (kind === 'HELP') {
      assert.ok(!families.has(name as string), `${name} appears twice`);
      current = name as string;
      families.set(current, { type: '', help: rest as string, labels: new Set() });
    } else if (kind === 'TYPE') {
      assert.equal(name, current);
      (families.get(current) as { type: string }).type = rest as string;
    } else {
      const line = parseLine(row);
      const { type, labels } = families.get(current) ?? assert.fail(row);
      assert.equal(type === 'histogram' ? line.name.replace(/_(bucket|sum|count)$/, '') : line.name, current);
      for (const label of Object.keys(line.labels)) if (label !== 'le') labels.add(label);
      lines.push(line);
    }
  }
  return { text, families, ...createReaders(lines) };
}

function parseLine(row: string): MetricLine {
  const [, name, labelText = '', value] = linePattern.exec(row) ?? assert.fail(`not a metrics line: ${row}`);
  const labels = Object.fromEntries([...labelText.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, key, text]) => [key, text]));
  return { name: name as string, labels, value: Number(String(value).replace('Inf', 'Infinity')) };
}

function createReaders(lines: readonly MetricLine[]): Pick<ParsedMetrics, 'value' | 'sum' | 'buckets'> {
  const findLines = (name: string, labels: Record<string, string>) =>
    lines.filter(
      (line) => line.name === name && Object.entries(labels).every(([label, value]) => line.labels[label] === value),
    );
  return {
    value(name, labels = {}) {
      const matchingLines = findLines(name, labels);
      assert.equal(matchingLines.length, 1, `${name} ${JSON.stringify(labels)}: ${matchingLines.length} lines`);
      return (matchingLines[0] as MetricLine).value;
    },
    sum: (name, labels = {}) => findLines(name, labels).reduce((sum, { value }) => sum + value, 0),
    buckets: (name) =>
      findLines(`${name}_bucket`, {}).map(({ labels, value }) => [
        Number(labels.le?.replace('+Inf', 'Infinity')),
        value,
      ]),
  };
}

/** Returns how much work of a kind the service ended or refused under load. */
export async function countShedWork(url: string, kind: (typeof shedKinds)[number]): Promise<number> {
  return (await scrapeMetrics(url)).value('toolhost_load_shed_total', { what: kind });
}

export async function scrapeMetrics(url: string): Promise<ParsedMetrics> {
  const response = await fetch(`${url}/metrics`);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return parseMetrics(text);
}
