import type { Command } from 'commander';
import { mostCallQuota, mostLimit, type SetLimits } from '../../domain/limits.ts';
import { fieldsOf, type LimitField, limitFieldNames } from '../../operations/limit-fields.ts';
import { wholeUpTo } from '../input/whole-number.ts';
import { print, printJson, table } from '../print/print.ts';
import { addOperatorOptions, asOperator, type OperatorOptions } from './as-operator.ts';

type Options = OperatorOptions & { server?: string } & SetLimits;
type Limit = { limit?: number; from: 'default' | 'set' | 'workspace'; set?: number };
type Limits = { slug?: string } & { [Field in LimitField]?: Limit };

export function addLimits(program: Command): void {
  const limits = program
    .command('limits')
    .description('how much a workspace or a server may be called, directly on the database (DATA_DIR or DATABASE_URL)');
  addOptions(limits.command('show'))
    .description('show the limits of all servers of a workspace together, or of one')
    .action((options: Options) => run(options, {}));
  addOptions(limits.command('set'))
    .description('set limits; they count in every process within a second')
    .option('--calls-per-second <number>', 'calls a second', wholeUpTo(mostLimit))
    .option('--concurrent-calls <number>', 'calls at once', wholeUpTo(mostLimit))
    .option('--calls-per-minute <number>', 'calls a minute (UTC), a quota', wholeUpTo(mostCallQuota))
    .option('--calls-per-day <number>', 'calls a day (UTC), a quota', wholeUpTo(mostCallQuota))
    .addHelpText(
      'after',
      `
Examples:
  toolhost limits set --workspace wsp_… --calls-per-second 1000 --concurrent-calls 500
  toolhost limits set --server projects --concurrent-calls 10
  toolhost limits set --workspace wsp_… --calls-per-day 100000`,
    )
    .action(set);
  addOptions(limits.command('reset'))
    .description('go back to the defaults, without quotas')
    .action((options: Options) => run(options, Object.fromEntries(limitFieldNames.map((field) => [field, null]))));
}

function addOptions(command: Command): Command {
  return addOperatorOptions(command).option('--server <slug>', 'only this server, within the limits of its workspace');
}

async function set(options: Options, command: Command): Promise<void> {
  const change = fieldsOf(options);
  if (Object.keys(change).length === 0)
    command.error(
      'error: nothing to set; give --calls-per-second, --concurrent-calls or both, or a quota: --calls-per-minute, --calls-per-day',
      { exitCode: 2 },
    );
  await run(options, change);
}

/** Sets the given limits, if any, and prints those in effect. */
async function run(options: Options, change: object): Promise<void> {
  await asOperator(options, async (operator) => {
    const { server: slug } = options;
    const isChange = Object.keys(change).length > 0;
    const limits = (await (slug === undefined
      ? operator.run(isChange ? 'setWorkspaceLimits' : 'getWorkspaceLimits', change)
      : operator.run(isChange ? 'setServerLimits' : 'getServerLimits', { slug, ...change }))) as Limits;
    if (options.json) printJson(limits);
    else print(textOf(limits));
  });
}

function textOf(limits: Limits): string {
  const rows = limitFieldNames.flatMap((field) => {
    const found = limits[field];
    return found ? [[labels[field], String(found.limit ?? 'none'), sources[found.from]]] : [];
  });
  return table(['LIMIT', 'VALUE', 'FROM'], rows);
}

const labels: Record<LimitField, string> = {
  calls_per_second: 'calls a second',
  concurrent_calls: 'calls at once',
  calls_per_minute: 'calls a minute',
  calls_per_day: 'calls a day',
};
const sources = { default: 'default of the environment', set: 'set', workspace: 'limit of the workspace' };
