import { setTimeout as wait } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { outcomes } from '../../errors.ts';
import { type Input, type Output, operations } from '../../operations/index.ts';
import { connect } from '../connection/connect.ts';
import { pageReader } from '../connection/lists.ts';
import { type ConnectedClient, serviceTime } from '../connection/rest-client.ts';
import { addConnectionOptions, type ConnectionOptions, type JsonOption, wholeUpTo } from '../options.ts';
import { jsonText, note, oneLine, painter, print, printJson } from '../print.ts';
import { type Dated, followRecords, newestRecords, type ReadRecords } from './follow-records.ts';
import { addFieldOptions, givenFields } from './operation-command.ts';

type Call = Output<'listCalls'>['calls'][number];
type Event = Output<'listAuditEvents'>['events'][number];
type Options = ConnectionOptions & JsonOption & { follow?: true; limit?: number; since?: Since };

export function addCalls(program: Command): void {
  const calls = addRecordOptions(program.command('calls'), 'calls').description(
    'list call records, newest first, or follow them',
  );
  const attributes = addFieldOptions(calls, operations.listCalls, {
    slug: ['--server <slug>', 'only calls of this server'],
    view: '--view <view>',
    tool: ['--tool <name>', 'only calls of this tool'],
    outcome: ['--outcome <outcome>', 'only calls with this outcome'],
    caller_kind: '--caller <kind>',
    key_id: ['--key-id <id>', 'only calls with this API key, key_…'],
  });
  calls
    .addHelpText(
      'after',
      `
With --json, a list is one object. With --follow, each call is one line.

Examples:
  toolhost calls --server projects --outcome timeout --since 2h
  toolhost calls --follow
  toolhost calls --follow --json > calls.jsonl`,
    )
    .action((options: Options) => {
      const filters: Input<'listCalls'> = givenFields({ ...options }, attributes);
      const read = (client: ConnectedClient) => readCalls(client, filters);
      return runRecords({ name: 'calls', read, lines: callLines, none: 'No calls found.' }, options);
    });
}

function readCalls(client: ConnectedClient, filters: Input<'listCalls'>): ReadRecords<Call> {
  return ({ since, ...page }) => {
    const from = since === undefined ? {} : { since: new Date(since).toISOString() };
    return pageReader(client, ['listCalls', 'calls'], { ...filters, ...from })(page);
  };
}

const outcomeWidth = Math.max(...outcomes.map(({ length }) => length));

/** Formats each call as one line. Columns have fixed widths, because followed calls arrive one by one. */
function callLines(calls: readonly Call[]): string[] {
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

export function addAudit(program: Command): void {
  addRecordOptions(program.command('audit'), 'changes')
    .description('list who changed what in the workspace, newest first, or follow it')
    .addHelpText(
      'after',
      `
With --json, a list is one object. With --follow, each change is one line.

Examples:
  toolhost audit --since 1d
  toolhost audit --follow --json`,
    )
    .action((options: Options) =>
      runRecords({ name: 'events', read: readEvents, lines: eventLines, none: 'No changes found.' }, options),
    );
}

function readEvents(client: ConnectedClient): ReadRecords<Event> {
  return ({ since, ...page }) => {
    const from = since === undefined ? {} : { since: new Date(since).toISOString() };
    return pageReader(client, ['listAuditEvents', 'events'], from)(page);
  };
}

function eventLines(events: readonly Event[]): string[] {
  const paint = painter(process.stdout, process.env);
  return events.map(({ at, operation, target, actor_kind, actor_id, actor_name, detail }) => {
    const actor = actor_name === undefined ? actor_id : `${actor_name} (${actor_id})`;
    const more = Object.keys(detail).length === 0 ? '' : paint(JSON.stringify(detail), 'dim');
    return [paint(at, 'dim'), operation.padEnd(18), target ?? '-', `by ${actor_kind} ${actor}`, more]
      .filter((text) => text !== '')
      .join('  ');
  });
}

const mostListed = 10_000;
const listed = 50;
const shownFirst = 10;

/** Adds the options of a command that lists records and can follow them. */
function addRecordOptions(command: Command, what: string): Command {
  const since = `only ${what} since then: 15m, 2h, 3d, or 2026-11-22T10:00:00Z`;
  return addConnectionOptions(command)
    .addOption(new Option('--since <time>', since).argParser(sinceOf))
    .option(
      '--limit <number>',
      `maximum number of ${what} (default: ${listed}, or ${shownFirst} with --follow)`,
      wholeUpTo(mostListed),
    )
    .option('--follow', `continue with new ${what} until Ctrl-C; the newest comes last`);
}

type RecordKind<Item> = {
  /** Name of the list in JSON. */
  name: string;
  read: (client: ConnectedClient) => ReadRecords<Item>;
  /** Formats records for the terminal, one line each. */
  lines: (records: readonly Item[]) => string[];
  none: string;
};

/** Lists or follows records. With `--json`, a list is one object, and each followed record is one line. */
async function runRecords<Item extends Dated>(kind: RecordKind<Item>, options: Options): Promise<void> {
  const client = await connect(options);
  const read = kind.read(client);
  const { json, follow, since, limit = follow ? shownFirst : listed } = options;
  const show = (records: readonly Item[]) => {
    if (json) for (const record of records) print(jsonText(record));
    else if (records.length > 0) print(kind.lines(records).map(oneLine).join('\n'));
  };
  const now = follow || (since && 'beforeNowMs' in since) ? await serviceTime(client.url) : 0;
  const from = since && ('at' in since ? since.at : now - since.beforeNowMs);
  if (follow) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));
    return followRecords({ read, show, since: from, first: limit, now, wait: (ms) => wait(ms), note });
  }
  const { entries, next } = await newestRecords(read, limit, from);
  if (json) printJson({ [kind.name]: entries, ...(next !== undefined && { next_cursor: next }) });
  else if (entries.length === 0) print(kind.none);
  else show(entries);
}

/** Point in time: epoch ms, or a number of milliseconds before now. */
type Since = { at: number } | { beforeNowMs: number };

const unitsMs: { [unit: string]: number } = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `15m` or `2026-11-22T10:00:00Z`. @throws InvalidArgumentError with the allowed form */
function sinceOf(text: string): Since {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return { beforeNowMs: Number(count) * (unitsMs[unit] ?? 0) };
  const at = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError(
      'allowed: a time span such as 30s, 15m, 2h, or 3d, or a timestamp such as 2026-11-22T10:00:00Z',
    );
  return { at };
}
