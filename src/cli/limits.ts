import { type Command, InvalidArgumentError } from 'commander';
import { mostLimit } from '../domain/limits.ts';
import { addOperatorOptions, asOperator, type OperatorOptions } from './as-operator.ts';
import { print, printJson, table } from './print.ts';

type Options = OperatorOptions & { server?: string; callsPerSecond?: number; concurrentCalls?: number };
type Limit = { limit?: number; from: 'default' | 'set' | 'workspace'; set?: number };
type Limits = { slug?: string; calls_per_second: Limit; concurrent_calls: Limit };

export function addLimits(program: Command): void {
  const limits = program
    .command('limits')
    .description('how much a workspace or a server may be called, directly on the database (DATA_DIR or DATABASE_URL)');
  addOptions(limits.command('show'))
    .description('show the limits of all servers of a workspace together, or of one')
    .action((options: Options) => run(options, {}));
  addOptions(limits.command('set'))
    .description('set limits; they count in every process within a second')
    .option('--calls-per-second <number>', 'calls a second', whole)
    .option('--concurrent-calls <number>', 'calls at once', whole)
    .addHelpText(
      'after',
      `
Examples:
  toolhost limits set --workspace wsp_… --calls-per-second 1000 --concurrent-calls 500
  toolhost limits set --server projects --concurrent-calls 10`,
    )
    .action(set);
  addOptions(limits.command('reset'))
    .description('go back to the defaults')
    .action((options: Options) => run(options, { calls_per_second: null, concurrent_calls: null }));
}

function addOptions(command: Command): Command {
  return addOperatorOptions(command).option('--server <slug>', 'this server alone, within the limits of its workspace');
}

function whole(text: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > mostLimit) throw new InvalidArgumentError(`allowed: a whole number from 1 to ${mostLimit}`);
  return value;
}

async function set(options: Options, command: Command): Promise<void> {
  const { callsPerSecond: calls_per_second, concurrentCalls: concurrent_calls } = options;
  if (calls_per_second === undefined && concurrent_calls === undefined)
    command.error('error: nothing to set; give --calls-per-second, --concurrent-calls or both', { exitCode: 2 });
  await run(options, {
    ...(calls_per_second !== undefined && { calls_per_second }),
    ...(concurrent_calls !== undefined && { concurrent_calls }),
  });
}

/** Sets what is given, nothing for showing alone, and shows what counts then. */
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
  const row = (name: string, { limit, from }: Limit) => [name, String(limit ?? 'none'), sources[from]];
  return table(
    ['LIMIT', 'VALUE', 'FROM'],
    [row('calls a second', limits.calls_per_second), row('calls at once', limits.concurrent_calls)],
  );
}

const sources = { default: 'default of the environment', set: 'set', workspace: 'limit of the workspace' };
