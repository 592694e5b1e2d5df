/** `npm run yardstick`: prints the numbers and their budgets. With `--set`, lowers the budgets to the numbers and raises none. */
import { describeOverruns, isSlack, lowerBudgets, type Measure, measureAll } from './yardstick.ts';

function formatTable(measures: readonly Measure[]): string {
  const width = Math.max(...measures.map(({ name }) => name.length));
  const formatRow = (name: string, now: unknown, budget: unknown, remark = '') =>
    `${name.padEnd(width)} ${String(now).padStart(8)} ${String(budget).padStart(8)}  ${remark}`.trimEnd();
  const getRemark = (measure: Measure) =>
    measure.now > measure.budget ? 'above budget' : isSlack(measure) ? 'lower the budget' : '';
  const rows = measures.map((measure) => formatRow(measure.name, measure.now, measure.budget, getRemark(measure)));
  return [formatRow('', 'now', 'budget'), ...rows].join('\n');
}

const measures = await measureAll();
console.log(formatTable(measures));
for (const sentence of describeOverruns(measures)) console.log(`\n${sentence}`);
if (process.argv.includes('--set')) {
  lowerBudgets(measures);
  console.log('\nThe budgets in test/yardstick.json were lowered to the measured numbers.');
} else if (measures.some(isSlack)) {
  console.log('\nLower the budgets to the measured numbers: npm run yardstick -- --set');
}
