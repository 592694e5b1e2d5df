import { type Command, Option } from 'commander';
import { callerKinds } from '../../domain/config/access.ts';
import { type Outcome, outcomes } from '../../errors.ts';
import type { Output } from '../../operations/index.ts';
import type { ConnectedClient } from '../connection/rest-client.ts';
import { painter } from '../print/print.ts';
import type { ReadRecords } from './read-records.ts';
import { addRecordOptions, type RecordOptions, runRecords } from './record-commands.ts';

type Call = Output<'listCalls'>['calls'][number];
type Options = RecordOptions & {
  server?: string;
  view?: string;
  tool?: string;
  outcome?: Outcome;
  caller?: (typeof callerKinds)[number];
  keyId?: string;
};

export function addCalls(program: Command): void {
  addRecordOptions(program.command('calls'), 'calls')
    .description('list the recorded calls of agents, newest first, or follow them')
    .option('--server <slug>', 'only calls of this server')
    .option('--view <view>', 'only calls at the address of this view')
    .option('--tool <name>', 'only calls of this tool')
    .addOption(new Option('--outcome <outcome>', 'only calls that ended like this').choices(outcomes))
    .addOption(new Option('--caller <kind>', 'only calls of this kind of caller').choices(callerKinds))
    .option('--key-id <id>', 'only calls with this API key, key_…')
    .addHelpText(
      'after',
      `
With --json a list is one object, and with --follow each call is a line.

Examples:
  toolhost calls --server projects --outcome timeout --since 2h
  toolhost calls --follow
  toolhost calls --follow --json | jq -r 'select(.outcome != "ok") | .reason'`,
    )
    .action((options: Options) =>
      runRecords(
        { name: 'calls', read: (client) => pagesOf(client, options), lines, none: 'No calls were found.' },
        options,
      ),
    );
}

function pagesOf(client: ConnectedClient, { server, view, tool, outcome, caller, keyId }: Options): ReadRecords<Call> {
  return async ({ since, ...page }, allowance) => {
    const filters = {
      ...(server !== undefined && { slug: server }),
      ...(view !== undefined && { view }),
      ...(tool !== undefined && { tool }),
      ...(outcome !== undefined && { outcome }),
      ...(caller !== undefined && { caller_kind: caller }),
      ...(keyId !== undefined && { key_id: keyId }),
      ...(since !== undefined && { since: new Date(since).toISOString() }),
    };
    const { calls, next_cursor } = await client.run('listCalls', { ...page, ...filters }, allowance);
    return { records: calls, next: next_cursor };
  };
}

const outcomeWidth = Math.max(...outcomes.map(({ length }) => length));

/** One line for each call. Columns have fixed widths, because calls that are followed come one by one. */
function lines(calls: readonly Call[]): string[] {
  const paint = painter(process.stdout, process.env);
  return calls.map(({ at, outcome, upstream_status, duration_ms, server, view, tool, reason }) =>
    [
      paint(at, 'dim'),
      paint(outcome.padEnd(outcomeWidth), outcome === 'ok' ? 'green' : 'red'),
      String(upstream_status ?? '').padStart(3),
      `${duration_ms} ms`.padStart(9),
      `${server}${view === undefined ? '' : `/${view}`} ${tool}`,
      ...(reason === undefined ? [] : [paint(`(${reason})`, 'dim')]),
    ].join('  '),
  );
}
