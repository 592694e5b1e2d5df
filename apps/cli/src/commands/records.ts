import { setTimeout as wait } from 'node:timers/promises';
import { outcomes } from '@toolhost/errors/errors';
import { type Input, type Output, operations } from '@toolhost/server/operations';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { connect } from '../connection/connect.ts';
import { createPageReader } from '../connection/lists.ts';
import { type ConnectedClient, getServiceTime } from '../connection/rest-client.ts';
import { addConnectionOptions, type ConnectionOptions, type JsonOption, parseIntegerUpTo } from '../options.ts';
import { createPainter, print, printJson, printMessage, toJsonText, toOneLine } from '../print.ts';
import { type DatedRecord, followRecords, type ReadRecords, readNewestRecords } from './follow-records.ts';
import { addFieldOptions, collectFields } from './operation-command.ts';

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
      const filters: Input<'listCalls'> = collectFields({ ...options }, attributes);
      const read = (client: ConnectedClient) => readCalls(client, filters);
      const { slug } = filters;
      const explainEmpty = async (client: ConnectedClient) => {
        // Calls of a deleted server are still listed. Without any, the slug is probably mistyped.
        if (slug !== undefined) await client.run('getMcpServer', { slug });
        return 'No calls found.';
      };
      return runRecords({ name: 'calls', read, formatLines: formatCalls, explainEmpty }, options);
    });
}

function readCalls(client: ConnectedClient, filters: Input<'listCalls'>): ReadRecords<Call> {
  return ({ since, ...page }) => {
    const sinceFilter = since === undefined ? {} : { since: new Date(since).toISOString() };
    return createPageReader(client, ['listCalls', 'calls'], { ...filters, ...sinceFilter })(page);
  };
}

const outcomeWidth = Math.max(...outcomes.map(({ length }) => length));

/** Formats each call as one line. Columns have fixed widths, because followed calls arrive one by one. */
function formatCalls(calls: readonly Call[]): string[] {
  const colorize = createPainter(process.stdout, process.env);
  return calls.map(({ at, outcome, upstream_status, duration_ms, server, view, tool, reason }) =>
    [
      colorize(at, 'dim'),
      colorize(outcome.padEnd(outcomeWidth), outcome === 'ok' ? 'green' : 'red'),
      String(upstream_status ?? '').padStart(3),
      `${duration_ms} ms`.padStart(9),
      `${server}${view === undefined ? '' : `/${view}`} ${tool}`,
      ...(reason === undefined ? [] : [colorize(`(${reason})`, 'dim')]),
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
      runRecords(
        {
          name: 'events',
          read: readEvents,
          formatLines: formatEvents,
          explainEmpty: async () => 'No changes found.',
        },
        options,
      ),
    );
}

function readEvents(client: ConnectedClient): ReadRecords<Event> {
  return ({ since, ...page }) => {
    const sinceFilter = since === undefined ? {} : { since: new Date(since).toISOString() };
    return createPageReader(client, ['listAuditEvents', 'events'], sinceFilter)(page);
  };
}

function formatEvents(events: readonly Event[]): string[] {
  const colorize = createPainter(process.stdout, process.env);
  return events.map(({ at, operation, target, actor_kind, actor_id, actor_name, detail }) => {
    const actor = actor_name === undefined ? actor_id : `${actor_name} (${actor_id})`;
    const detailText = Object.keys(detail).length === 0 ? '' : colorize(JSON.stringify(detail), 'dim');
    return [colorize(at, 'dim'), operation.padEnd(18), target ?? '-', `by ${actor_kind} ${actor}`, detailText]
      .filter((text) => text !== '')
      .join('  ');
  });
}

const maxListed = 10_000;
const defaultListed = 50;
const defaultFollowed = 10;

/** Adds the options of a command that lists records and can follow them. */
function addRecordOptions(command: Command, noun: string): Command {
  const since = `only ${noun} since then: 15m, 2h, 3d, or 2026-11-22T10:00:00Z`;
  return addConnectionOptions(command)
    .addOption(new Option('--since <time>', since).argParser(parseSince))
    .option(
      '--limit <number>',
      `maximum number of ${noun} (default: ${defaultListed}, or ${defaultFollowed} with --follow)`,
      parseIntegerUpTo(maxListed),
    )
    .option('--follow', `continue with new ${noun} until Ctrl-C; the newest comes last`);
}

type RecordKind<Item> = {
  /** Name of the list in JSON. */
  name: string;
  read: (client: ConnectedClient) => ReadRecords<Item>;
  /** Formats records for the terminal, one line each. */
  formatLines: (records: readonly Item[]) => string[];
  /** Returns the text for an empty list. @throws AppError if a filter names something that does not exist */
  explainEmpty: (client: ConnectedClient) => Promise<string>;
};

/** Lists or follows records. With `--json`, a list is one object, and each followed record is one line. */
async function runRecords<Item extends DatedRecord>(kind: RecordKind<Item>, options: Options): Promise<void> {
  const client = await connect(options);
  const read = kind.read(client);
  const { json, follow, since, limit = follow ? defaultFollowed : defaultListed } = options;
  const showRecords = (records: readonly Item[]) => {
    if (json) for (const record of records) print(toJsonText(record));
    else if (records.length > 0) print(kind.formatLines(records).map(toOneLine).join('\n'));
  };
  const needsServiceTime = follow || (since && 'agoMs' in since);
  const now = needsServiceTime ? await getServiceTime(client.url) : 0;
  const sinceMs = since && ('atMs' in since ? since.atMs : now - since.agoMs);
  if (follow) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));
    return followRecords({
      read,
      showRecords,
      since: sinceMs,
      initialCount: limit,
      now,
      wait: (ms) => wait(ms),
      note: printMessage,
    });
  }
  const { entries, nextCursor } = await readNewestRecords(read, limit, sinceMs);
  const emptyText = entries.length === 0 ? await kind.explainEmpty(client) : '';
  if (json) printJson({ [kind.name]: entries, ...(nextCursor !== undefined && { next_cursor: nextCursor }) });
  else if (entries.length === 0) print(emptyText);
  else showRecords(entries);
}

/** Point in time: epoch ms, or a number of milliseconds before now. */
type Since = { atMs: number } | { agoMs: number };

const msPerUnit: { [unit: string]: number } = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `15m` or `2026-11-22T10:00:00Z`. @throws InvalidArgumentError with the allowed form */
function parseSince(text: string): Since {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return { agoMs: Number(count) * (msPerUnit[unit] ?? 0) };
  const atMs = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(atMs))
    throw new InvalidArgumentError(
      'allowed: a time span such as 30s, 15m, 2h, or 3d, or a timestamp such as 2026-11-22T10:00:00Z',
    );
  return { atMs };
}
