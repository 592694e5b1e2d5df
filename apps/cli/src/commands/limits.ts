import { limitFieldNames, limitFields } from '@toolhost/limits/call-limits';
import { type Input, type Output, operations, operatorOperations } from '@toolhost/server/operations';
import type { Command } from 'commander';
import { type TargetOptions, withTarget } from '../connection/connect.ts';
import { addTargetOptions, formatFieldDescription, type JsonOption } from '../options.ts';
import { formatTable, print, printJson } from '../print.ts';
import { onDatabaseOrServicePhrase, rejectEmptyChange } from './keys.ts';
import { addFieldOptions, collectFields } from './operation-command.ts';

type Options = TargetOptions & JsonOption & { server?: string; [attribute: string]: unknown };
type Change = { [field: string]: unknown };

/** Command group with `show`, `set`, and `reset`. `run` makes the change and prints the resulting values. */
type SettingsGroup = {
  descriptions: readonly [show: string, set: string, reset: string];
  fields: readonly string[];
  operation: Parameters<typeof addFieldOptions>[1];
  examples: string;
  addOptions: (command: Command) => Command;
  run: (options: Options, change: Change) => Promise<void>;
};

function addSettings(
  group: Command,
  { descriptions, fields, operation, examples, addOptions, run }: SettingsGroup,
): void {
  addOptions(group.command('show'))
    .description(descriptions[0])
    .action((options: Options) => run(options, {}));
  const set = addOptions(group.command('set')).description(descriptions[1]);
  const flags = Object.fromEntries(fields.map((field) => [field, `--${field.replaceAll('_', '-')} <number>`]));
  const attributes = addFieldOptions(set, operation, flags);
  set.addHelpText('after', `\nExamples:\n${examples}`).action((options: Options) => {
    const change = collectFields(options, attributes);
    rejectEmptyChange(set, change, attributes);
    return run(options, change);
  });
  addOptions(group.command('reset'))
    .description(descriptions[2])
    .action((options: Options) => run(options, Object.fromEntries(fields.map((field) => [field, null]))));
}

export function addLimits(program: Command): void {
  const limits = program
    .command('limits')
    .description(`show and set call limits of a workspace or a server, ${onDatabaseOrServicePhrase}`);
  addSettings(limits, {
    descriptions: [
      'show the limits of a workspace (all of its servers together) or of one server',
      'set limits; they take effect in every process within a second',
      'reset limits to their defaults, without call quotas',
    ],
    fields: limitFieldNames,
    operation: operations.setServerLimits,
    examples: `  toolhost limits set --workspace wsp_… --calls-per-second 1000 --concurrent-calls 500
  toolhost limits set --server projects --concurrent-calls 10
  toolhost limits set --workspace wsp_… --calls-per-day 100000`,
    addOptions: (command) =>
      addTargetOptions(command).option('--server <slug>', 'only this server, within the limits of its workspace'),
    run: runLimits,
  });
}

function runLimits(options: Options, change: Change): Promise<void> {
  return withTarget(options, async (target) => {
    const { server: slug } = options;
    const isChange = Object.keys(change).length > 0;
    const limits = await (slug === undefined
      ? target.run(isChange ? 'setWorkspaceLimits' : 'getWorkspaceLimits', change)
      : target.run(isChange ? 'setServerLimits' : 'getServerLimits', { slug, ...change }));
    if (options.json) printJson(limits);
    else print(formatLimits(limits));
  });
}

function formatLimits(limits: Output<'getWorkspaceLimits'>): string {
  const sources = { default: 'environment default', set: 'set', workspace: 'workspace limit' };
  const rows = limitFieldNames.flatMap((field) => {
    const limit = limits[field];
    return limit ? [{ label: limitFields[field].label, ...limit }] : [];
  });
  return formatTable(rows, {
    limit: ({ label }) => label.toLowerCase().replace(' (utc)', ''),
    value: ({ limit = 'none' }) => limit,
    from: ({ from }) => sources[from],
  });
}

const { setWorkspaceQuotas } = operatorOperations;
const quotaNames = Object.keys(setWorkspaceQuotas.input.shape) as (keyof Input<'setWorkspaceQuotas'>)[];

export function addQuotas(program: Command): void {
  const quotas = program
    .command('quotas')
    .description(`show and set how much a workspace may store and change, ${onDatabaseOrServicePhrase}`);
  addSettings(quotas, {
    descriptions: [
      'show the quotas of a workspace and their usage',
      'set quotas of a workspace; 0 means no limit',
      'reset quotas to the defaults, which QUOTAS sets',
    ],
    fields: quotaNames,
    operation: setWorkspaceQuotas,
    examples: `  toolhost quotas set --workspace wsp_… --servers 5000 --megabytes 1000
  toolhost quotas set --writes 0`,
    addOptions: addTargetOptions,
    run: runQuotas,
  });
}

function runQuotas(options: Options, change: Input<'setWorkspaceQuotas'>): Promise<void> {
  return withTarget(options, async (target) => {
    const isChange = Object.keys(change).length > 0;
    const quotas = await (isChange ? target.run('setWorkspaceQuotas', change) : target.run('getWorkspaceQuotas', {}));
    if (options.json) printJson(quotas);
    else print(formatQuotas(quotas));
  });
}

function formatQuotas(quotas: Output<'getWorkspaceQuotas'>): string {
  return formatTable(quotaNames, {
    quota: (name) => name,
    limit: (name) => quotas[name].limit ?? 'none',
    used: (name) => quotas[name].used ?? '',
    from: (name) => (quotas[name].from === 'set' ? 'set' : 'environment default'),
    of: (name) => formatFieldDescription(setWorkspaceQuotas.output.shape[name]),
  });
}
