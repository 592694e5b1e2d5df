/** `npm run yardstick`: prints the numbers and their budgets. With `--set`, lowers the budgets to the numbers and raises none. */
import { isSlack, lowerBudgets, type Measure, measureAll, tooMuch } from './yardstick.ts';

function table(measures: readonly Measure[]): string {
  const width = Math.max(...measures.map(({ name }) => name.length));
  const row = (name: string, now: unknown, budget: unknown, remark = '') =>
    `${name.padEnd(width)} ${String(now).padStart(8)} ${String(budget).padStart(8)}  ${remark}`.trimEnd();
  const remarkOn = (measure: Measure) =>
    measure.now > measure.budget ? 'above budget' : isSlack(measure) ? 'lower the budget' : '';
  const rows = measures.map((measure) => row(measure.name, measure.now, measure.budget, remarkOn(measure)));
  return [row('', 'now', 'budget'), ...rows].join('\n');
}

const measures = await measureAll();
console.log(table(measures));
for (const sentence of tooMuch(measures)) console.log(`\n${sentence}`);
if (process.argv.includes('--set')) {
  lowerBudgets(measures);
  console.log('\nThe budgets in test/yardstick.json were lowered to the measured numbers.');
} else if (measures.some(isSlack)) {
  console.log('\nLower the budgets to the measured numbers: npm run yardstick -- --set');
}
