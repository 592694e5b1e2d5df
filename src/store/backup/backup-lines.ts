import { createHash, type Hash } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '../../errors.ts';

/**
 * A backup is text in lines of JSON: a header; for each table a line with its columns and then its rows, as arrays; an
 * end with the number of rows and a hash of everything before. It has the same form on both engines.
 */
export const formatVersion = 1;

/** A value of a row. The migrations have columns of these kinds only. */
export type Cell = string | number | null;
export type Row = readonly Cell[];

export const migrationRow = z.object({
  name: z.string(),
  applied_at: z.number(),
  checksum: z.string(),
  version: z.string(),
  readable_by: z.string().nullable(),
});

const headerLine = z.object({
  toolhost_backup: z.number(),
  made_at: z.iso.datetime(),
  /** The version of the program that made it. */
  version: z.string(),
  engine: z.enum(['sqlite', 'postgres']),
  /** The migrations of the database, which say what form its tables have. */
  migrations: z.array(migrationRow),
});
const tableLine = z.object({ table: z.string(), columns: z.array(z.string()).min(1) });
const rowLine = z.array(z.union([z.string(), z.number(), z.null()]));
const endLine = z.object({ end: z.record(z.string(), z.number()), sha256: z.string() });

export type BackupHeader = z.infer<typeof headerLine>;
export type BackupTable = z.infer<typeof tableLine>;
/** Number of rows of each table. */
export type RowCounts = { [table: string]: number };

export type BackupPart = { header: BackupHeader } | BackupTable | { rows: Row[] } | { end: RowCounts };

/** Makes the lines of a backup, in the order of the calls. */
export class BackupLines {
  readonly #hash: Hash = createHash('sha256');
  readonly #counts: RowCounts = {};
  #table = '';

  header(header: Omit<BackupHeader, 'toolhost_backup'>): string {
    return this.#line({ toolhost_backup: formatVersion, ...header });
  }

  table({ table, columns }: BackupTable): string {
    this.#table = table;
    this.#counts[table] = 0;
    return this.#line({ table, columns });
  }

  rows(rows: readonly Row[]): string {
    this.#counts[this.#table] = (this.#counts[this.#table] ?? 0) + rows.length;
    return rows.map((row) => this.#line(row)).join('');
  }

  end(): { text: string; counts: RowCounts } {
    const sha256 = this.#hash.copy().digest('hex');
    return { text: this.#line({ end: this.#counts, sha256 }), counts: this.#counts };
  }

  #line(value: unknown): string {
    const line = `${JSON.stringify(value)}\n`;
    this.#hash.update(line);
    return line;
  }
}

/** Most characters of rows that are handed on together. */
const mostTogether = 1_000_000;
const mostRows = 500;

/**
 * Reads the lines of a backup. The last part is `end`, after which everything is known to be complete.
 * @throws AppError invalid when it is damaged or incomplete, conflict when it has a newer format
 */
export async function* readBackup(lines: AsyncIterable<string>): AsyncGenerator<BackupPart> {
  const reader = new BackupReader();
  for await (const line of lines) {
    yield* reader.partsBefore(line);
    const part = reader.read(line);
    if (part) yield part;
  }
  reader.refuseWithoutEnd();
}

class BackupReader {
  readonly #hash: Hash = createHash('sha256');
  readonly #counts: RowCounts = {};
  #state: 'new' | 'open' | 'ended' = 'new';
  #table: BackupTable | undefined;
  #rows: Row[] = [];
  #characters = 0;

  /** The rows so far, when they are enough or the line is no other row. */
  *partsBefore(line: string): Generator<BackupPart> {
    if (this.#rows.length === 0) return;
    if (this.#rows.length < mostRows && this.#characters < mostTogether && line.startsWith('[')) return;
    yield { rows: this.#rows };
    this.#rows = [];
    this.#characters = 0;
  }

  /** Undefined for a row, which is collected. */
  read(line: string): BackupPart | undefined {
    if (this.#state === 'ended') throw damaged('something follows its end');
    const part = this.#partOf(parseLine(line));
    if (!part || !('end' in part)) this.#hash.update(`${line}\n`);
    this.#characters += line.length;
    return part;
  }

  refuseWithoutEnd(): void {
    if (this.#state !== 'ended') throw damaged(this.#state === 'new' ? 'it is empty' : 'its end is missing');
  }

  #partOf(value: unknown): BackupPart | undefined {
    if (this.#state === 'new') {
      this.#state = 'open';
      return { header: headerOf(value) };
    }
    if (Array.isArray(value)) {
      if (!this.#table) throw damaged('a row stands outside of a table');
      this.#rows.push(rowOf(value, this.#table));
      this.#counts[this.#table.table] = (this.#counts[this.#table.table] ?? 0) + 1;
      return undefined;
    }
    const end = endLine.safeParse(value);
    if (!end.success) {
      this.#table = tableOf(value);
      this.#counts[this.#table.table] ??= 0;
      return this.#table;
    }
    refuseOther(end.data, { end: this.#counts, sha256: this.#hash.digest('hex') });
    this.#state = 'ended';
    return { end: this.#counts };
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    throw damaged('a line is not JSON');
  }
}

function headerOf(value: unknown): BackupHeader {
  const form = z.object({ toolhost_backup: z.number() }).safeParse(value);
  if (!form.success) throw damaged('it does not begin with the header of one');
  if (form.data.toolhost_backup > formatVersion) {
    throw new AppError(
      'conflict',
      `the backup has format ${form.data.toolhost_backup}, and this version reads up to ${formatVersion}; restore it with the version of toolhost that made it or a newer one`,
    );
  }
  const header = headerLine.safeParse(value);
  if (!header.success) throw damaged('its first line is not complete');
  return header.data;
}

function tableOf(value: unknown): BackupTable {
  const table = tableLine.safeParse(value);
  if (!table.success) throw damaged('a line is neither a table nor a row');
  return table.data;
}

function rowOf(value: unknown, { table, columns }: BackupTable): Row {
  const row = rowLine.safeParse(value);
  if (!row.success || row.data.length !== columns.length) throw damaged(`a row of ${table} does not fit its columns`);
  return row.data;
}

type End = { end: RowCounts; sha256: string };

function refuseOther(stated: End, found: End): void {
  if (stated.sha256 !== found.sha256) throw damaged('its content is not what was written');
  const isSame = Object.keys({ ...stated.end, ...found.end }).every((name) => stated.end[name] === found.end[name]);
  if (!isSame) throw damaged('rows are missing');
}

export function damaged(reason: string): AppError {
  return new AppError(
    'invalid',
    `this is not a sound backup: ${reason}; take another one, and check it with "toolhost verify"`,
  );
}
