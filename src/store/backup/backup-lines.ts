import { createHash, type Hash } from 'node:crypto';
import { z } from 'zod';
import { scanJson } from '../../domain/json/json-scan.ts';
import { AppError } from '../../errors.ts';

/**
 * A backup is text in lines of JSON: a header; for each table a line with its columns and then its rows, as arrays; an
 * end with the number of rows and a hash of everything before. It has the same form on both engines.
 */
export const formatVersion = 1;

/** Bytes of the longest line: a configuration has 4 MiB, and its text in a line twice as many at most. */
export const longestLine = 32 * 1024 * 1024;
/** A line longer than this is read only when it has no more values than a row or a header can have. */
const shortLine = 64 * 1024;
/** Of such a line. A list of rows in a header is its deepest value. */
const mostInLine = { depth: 4, elements: 10_000 };

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
    if (line.length > shortLine && Buffer.byteLength(line) > longestLine)
      throw new Error(`a row of ${this.#table} is longer than ${longestLine} bytes, which no backup can hold`);
    this.#hash.update(line);
    return line;
  }
}

/** Most bytes of rows that are handed on together. */
const mostTogether = 1_000_000;
const mostRows = 500;
const openingBracket = 0x5b;

/**
 * Reads the lines of a backup. The last part is `end`, after which everything is known to be complete.
 * @throws AppError invalid when it is damaged or incomplete, conflict when it has a newer format
 */
export async function* readBackup(lines: AsyncIterable<Buffer>): AsyncGenerator<BackupPart> {
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
  #bytes = 0;

  /** The rows so far, when they are enough or the line is no other row. */
  *partsBefore(line: Buffer): Generator<BackupPart> {
    if (this.#rows.length === 0) return;
    if (this.#rows.length < mostRows && this.#bytes < mostTogether && line[0] === openingBracket) return;
    yield { rows: this.#rows };
    this.#rows = [];
    this.#bytes = 0;
  }

  /** Undefined for a row, which is collected. */
  read(line: Buffer): BackupPart | undefined {
    if (this.#state === 'ended') throw damaged('something follows its end');
    const part = this.#partOf(parseLine(line));
    if (!part || !('end' in part)) this.#hash.update(line).update('\n');
    this.#bytes += line.length;
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
      const table = tableOf(value);
      if (Object.hasOwn(this.#counts, table.table)) throw damaged(`the table ${table.table} stands in it twice`);
      this.#table = table;
      this.#counts[table.table] = 0;
      return table;
    }
    refuseOther(end.data, { end: this.#counts, sha256: this.#hash.digest('hex') });
    this.#state = 'ended';
    return { end: this.#counts };
  }
}

function parseLine(line: Buffer): unknown {
  try {
    if (line.length > shortLine) refuseMany(line);
    return JSON.parse(line.toString()) as unknown;
  } catch {
    throw damaged('a line is not JSON of a row, a table or a header');
  }
}

/** @throws SyntaxError for a line whose values would take far more memory and time than its text */
function refuseMany(line: Buffer): void {
  const scan = scanJson(line, mostInLine.depth);
  if (!scan || scan.depth > mostInLine.depth || scan.elements > mostInLine.elements) throw new SyntaxError();
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
