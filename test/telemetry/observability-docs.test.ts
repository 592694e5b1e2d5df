import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { metricRows } from '../../docs/metrics-page.ts';
import { type ParsedMetrics, scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const folder = resolve(import.meta.dirname, '..', '..', 'docs', 'operations');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: { summary: string } };
type Panel = { type: string; title: string; targets?: { expr: string }[] };

const rules = (parse(read('alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read('grafana-dashboard.json')) as { panels: Panel[] };
const guide = read('observability.md');
const reference = readFileSync(join(folder, '..', 'reference', 'metrics.md'), 'utf8');

/** Returns the metric names in a text, without those that a histogram adds. */
function findMetricNames(text: string): string[] {
  return [...text.matchAll(/\b(?:toolhost|process|nodejs)_[a-z_]+[a-z]\b/g)].map(([name]) => name);
}

describe('guide, dashboard, and alerts', () => {
  const toolhost = useFixture(startToolhost);
  let metrics: ParsedMetrics;
  before(async () => {
    metrics = await scrapeMetrics(toolhost.url);
  });

  const getFamilyName = (name: string) =>
    metrics.families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
  const findUnknownMetrics = (text: string) =>
    findMetricNames(text).filter((name) => !metrics.families.has(getFamilyName(name)));
  const getExpressions = () => [
    ...rules.map(({ expr }) => expr),
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ];

  it('name only existing metrics', () => {
    assert.ok(rules.length > 10 && panels.length > 25);
    for (const text of [...getExpressions(), JSON.stringify(rules), guide, reference])
      assert.deepEqual(findUnknownMetrics(text), [], text);
    for (const { alert, expr } of rules) assert.ok(findMetricNames(expr).length > 0, alert);
    for (const { type, title, targets = [] } of panels) assert.equal(targets.length > 0, type !== 'row', title);
  });

  it('describe every metric like the code, and show it', () => {
    const documented = reference.split('\n').filter((line) => line.startsWith('| `'));
    assert.deepEqual(documented, metricRows(metrics.text), 'npm run docs');
    const shown = new Set(getExpressions().flatMap(findMetricNames).map(getFamilyName));
    const hidden = [...metrics.families.keys()].filter((name) => !shown.has(name));
    assert.deepEqual(hidden, []);
  });

  it('use existing labels and values', () => {
    for (const expr of getExpressions()) {
      for (const [, name = '', matchers = ''] of expr.matchAll(/([a-z_]+)\{([^}]*)\}/g)) {
        for (const [, label = '', operator, values = ''] of matchers.matchAll(/([a-z]+)(=~|!=|=)"([^"]*)"/g)) {
          if (label === 'job') continue;
          const family = metrics.families.get(getFamilyName(name));
          // Metrics without samples until their feature is used cannot be compared.
          if (family?.labels.size === 0) continue;
          const lines = metrics.text.split('\n').filter((line) => line.startsWith(name));
          for (const value of values.split('|')) {
            const hasValue = lines.some((line) => line.includes(`${label}="${value}"`));
            assert.ok(hasValue, `${operator} ${value}: ${expr}`);
          }
        }
      }
    }
  });

  it('have a runbook entry for every alert and no others', () => {
    const headings = [...read('runbook.md').matchAll(/^### (.+)$/gm)].flatMap(([, names = '']) => names.split(', '));
    assert.deepEqual(headings.toSorted(), rules.map(({ alert }) => alert).toSorted());
  });

  it('give every alert a severity and a summary', () => {
    const names = rules.map(({ alert }) => alert);
    assert.equal(new Set(names).size, names.length);
    for (const { alert, labels, annotations } of rules) {
      assert.match(alert, /^Toolhost[A-Z]\w+$/);
      assert.match(labels.severity, /^(critical|warning|info)$/);
      assert.match(annotations.summary, /\.$/);
    }
  });
});
