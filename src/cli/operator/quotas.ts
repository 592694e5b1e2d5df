import { type Command, InvalidArgumentError, Option } from 'commander';
import { mostQuota, type QuotaName, quotaKinds, quotaNames } from '../../domain/quotas.ts';
import type { Input, Output } from '../../operations/index.ts';
import { print, printJson, table } from '../print/print.ts';
import { addOperatorOptions, asOperator, type OperatorOptions } from './as-operator.ts';

type Options = OperatorOptions & { [Name in QuotaName]?: number };

export function addQuotas(program: Command): void {
  const quotas = program
    .command('quotas')
    .description('how much a workspace may store and change, directly on the database (DATA_DIR or DATABASE_URL)');
  addOperatorOptions(quotas.command('show'))
    .description('show the quotas of a workspace and what of them is used')
    .action((options: Options) => run(options, {}));
  const set = addOperatorOptions(quotas.command('set')).description('set quotas of a workspace; 0 is no limit');
  for (const name of quotaNames) {
    set.addOption(new Option(`--${name} <number>`, quotaKinds[name].what).argParser(whole));
  }
  set
    .addHelpText(
      'after',
      `
Examples:
  toolhost quotas set --workspace wsp_… --servers 5000 --megabytes 1000
  toolhost quotas set --writes 0`,
    )
    .action(change);
  addOperatorOptions(quotas.command('reset'))
    .description('go back to the defaults, which QUOTAS sets')
    .action((options: Options) => run(options, Object.fromEntries(quotaNames.map((name) => [name, null]))));
}

function whole(text: string): number {
  const value = /^\d{1,8}$/.test(text) ? Number(text) : mostQuota + 1;
  if (value > mostQuota) throw new InvalidArgumentError(`allowed: a whole number from 0 (no limit) to ${mostQuota}`);
  return value;
}

async function change(options: Options, command: Command): Promise<void> {
  const given = quotaNames.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]] as const]));
  if (given.length === 0) {
    const names = quotaNames.map((name) => `--${name}`).join(', ');
    command.error(`error: nothing to set; give one or more of ${names}`, { exitCode: 2 });
  }
  await run(options, Object.fromEntries(given));
}

/** Sets the given quotas, if any, and prints those in effect. */
async function run(options: Options, input: Input<'setWorkspaceQuotas'>): Promise<void> {
  await asOperator(options, async (operator) => {
    const isChange = Object.keys(input).length > 0;
    const quotas = isChange
      ? await operator.run('setWorkspaceQuotas', input)
      : await operator.run('getWorkspaceQuotas', {});
    if (options.json) printJson(quotas);
    else print(textOf(quotas));
  });
}

function textOf(quotas: Output<'getWorkspaceQuotas'>): string {
  return table(
    ['QUOTA', 'LIMIT', 'USED', 'FROM', 'OF'],
    quotaNames.map((name) => {
      const { limit, used, from } = quotas[name];
      const source = from === 'set' ? 'set' : 'default of the environment';
      return [name, String(limit ?? 'none'), String(used ?? ''), source, quotaKinds[name].what];
    }),
  );
}
