import type { Usage } from '../answers.ts';
import { CallsChart } from '../calls/call-charts.tsx';

const dayMs = 86_400_000;

/** Calls day by day, those without calls too. */
export function DaysChart({ usage }: { usage: Usage }) {
  const byDay = new Map(usage.by_day.map((sum) => [sum.day, sum]));
  const from = Date.parse(usage.from);
  const days = Array.from({ length: (Date.parse(usage.to) - from) / dayMs }, (_, index) => {
    const at = new Date(from + index * dayMs);
    const { calls = 0, errors = 0 } = byDay.get(at.toISOString().slice(0, 10)) ?? {};
    return { at: at.toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' }), calls, errors };
  });
  return <CallsChart counts={days} />;
}
