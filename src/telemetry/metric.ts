/** Rule for merging the values of several processes. */
export type Merge = 'sum' | 'max' | 'min';

/** One line of a metric. `labels` is the printed form, such as `outcome="ok"`, or empty. */
export type Sample = { suffix: string; labels: string; value: number };

/** A metric as plain data, so that it can be sent between processes. */
export type Metric = {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  merge: Merge;
  samples: Sample[];
};

/** A number that another module keeps, read at each scrape. With `label`, one number for each of its values. */
export type Source = { name: string; help: string; type: 'counter' | 'gauge'; merge?: Merge } & (
  | { read: () => number }
  | { label: string; readEach: () => { readonly [value: string]: number } }
);

export function readSource(source: Source): Metric {
  const { name, help, type, merge = 'sum' } = source;
  const samples =
    'read' in source
      ? [{ suffix: '', labels: '', value: source.read() }]
      : Object.entries(source.readEach()).map(([value, count]) => ({
          suffix: '',
          labels: label(source.label, value),
          value: count,
        }));
  return { name, help, type, merge, samples };
}

/** Formats and escapes `name="value"` for the text format. */
export function label(name: string, value: string): string {
  return `${name}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`;
}

const merges: Record<Merge, (a: number, b: number) => number> = { sum: (a, b) => a + b, max: Math.max, min: Math.min };

/** Merges the metrics of several processes. */
export function mergeMetrics(processes: readonly (readonly Metric[])[]): Metric[] {
  const merged = new Map<string, Metric>();
  for (const metric of processes.flat()) {
    const known = merged.get(metric.name);
    if (!known) merged.set(metric.name, { ...metric, samples: metric.samples.map((sample) => ({ ...sample })) });
    else addSamples(known, metric.samples);
  }
  return [...merged.values()];
}

function addSamples(metric: Metric, samples: readonly Sample[]): void {
  const known = new Map(metric.samples.map((sample) => [`${sample.suffix} ${sample.labels}`, sample]));
  for (const sample of samples) {
    const same = known.get(`${sample.suffix} ${sample.labels}`);
    if (same) same.value = merges[metric.merge](same.value, sample.value);
    else metric.samples.push({ ...sample });
  }
}

/** The Prometheus text format, version 0.0.4. */
export function metricsText(metrics: readonly Metric[]): string {
  return metrics.map(metricText).join('');
}

function metricText({ name, help, type, samples }: Metric): string {
  const lines = samples.map(
    ({ suffix, labels, value }) => `${name}${suffix}${labels && `{${labels}}`} ${numberText(value)}\n`,
  );
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}
