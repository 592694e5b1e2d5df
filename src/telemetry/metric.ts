/** How the values of several processes become one. */
export type Merge = 'sum' | 'max' | 'min';

/** One line of a metric. `labels` is as it is printed, such as `outcome="ok"`, or empty. */
export type Sample = { suffix: string; labels: string; value: number };

/** A metric as plain data, so that it can go from one process to another. */
export type Metric = {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  merge: Merge;
  samples: Sample[];
};

/** A number that somebody else keeps, read when somebody looks. With `label` one number for each of its values. */
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

/** `name="value"`, as the text format wants it. */
export function label(name: string, value: string): string {
  return `${name}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`;
}

const merges: Record<Merge, (a: number, b: number) => number> = { sum: (a, b) => a + b, max: Math.max, min: Math.min };

/** The metrics of several processes as those of one. */
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
