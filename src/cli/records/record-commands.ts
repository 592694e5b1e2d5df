import { setTimeout as wait } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../../errors.ts';
import { brokenOff } from '../connection/answer.ts';
import { connect } from '../connection/connect.ts';
import { addConnectionOptions, type ConnectionOptions } from '../connection/connection.ts';
import type { ConnectedClient } from '../connection/rest-client.ts';
import { wholeUpTo } from '../input/whole-number.ts';
import { jsonText, note, oneLine, print, printJson } from '../print/print.ts';
import { followRecords } from './follow-records.ts';
import { type Dated, newestRecords, type ReadRecords } from './read-records.ts';

export type RecordOptions = ConnectionOptions & { json?: true; follow?: true; limit?: number; since?: Since };

const mostListed = 10_000;
const listed = 50;
const shownFirst = 10;

/** The options of a command that lists records and can follow them. */
export function addRecordOptions(command: Command, what: string): Command {
  return addConnectionOptions(command)
    .addOption(
      new Option('--since <time>', `only ${what} from then on: 15m, 2h, 3d, or 2026-11-22T10:00:00Z`).argParser(
        sinceOf,
      ),
    )
    .option(
      '--limit <number>',
      `most ${what} to list (default: ${listed}, or ${shownFirst} with --follow)`,
      wholeUpTo(mostListed),
    )
    .option('--follow', `go on with new ${what} until Ctrl-C; the newest comes last`);
}

type RecordKind<Item> = {
  /** Name of the list in JSON. */
  name: string;
  read: (client: ConnectedClient) => ReadRecords<Item>;
  /** Lines for people; the heads of the columns when there is no record. */
  lines: (records: readonly Item[]) => string[];
  none: string;
};

/** Lists records, or follows them. With `--json` a list is one object, and each record that is followed a line. */
export async function runRecords<Item extends Dated>(kind: RecordKind<Item>, options: RecordOptions): Promise<void> {
  const client = await connect(options, process.env);
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
  const { records, next } = await newestRecords(read, limit, from);
  if (json) printJson({ [kind.name]: records, ...(next !== undefined && { next_cursor: next }) });
  else if (records.length === 0) print(kind.none);
  else show(records);
}

/** A point in time: epoch ms, or so many ms before now. */
type Since = { at: number } | { beforeNowMs: number };

const unitsMs: { [unit: string]: number } = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `15m` or `2026-11-22T10:00:00Z`. @throws InvalidArgumentError, which says what is allowed */
function sinceOf(text: string): Since {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return { beforeNowMs: Number(count) * (unitsMs[unit] ?? 0) };
  const at = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError(
      'allowed: a span such as 30s, 15m, 2h or 3d, or a time such as 2026-11-22T10:00:00Z',
    );
  return { at };
}

const patienceMs = 10_000;

/** The time of the service in epoch ms, so that the clock of this machine does not matter. @throws AppError */
async function serviceTime(url: string): Promise<number> {
  try {
    const { headers, body } = await fetch(`${url}/livez`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    });
    await body?.cancel();
    const at = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(at)) return at;
  } catch (error) {
    throw brokenOff(url, error);
  }
  throw new AppError('unavailable', `${url} does not say what time it is; give --since as a time`);
}
