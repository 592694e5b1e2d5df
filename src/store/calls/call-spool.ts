import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallRow } from '../schema.ts';
import { batchRows, type CallWriter, recordColumns } from './call-writer.ts';

const names = /^unwritten-calls-[0-9a-f]+\.jsonl$/;
const privateMode = 0o600;

/**
 * Writes call records that the database did not take to a file in the data folder, for the next start. Returns its path,
 * or undefined when the folder does not exist, as with PostgreSQL, where nothing else needs one.
 * @throws whatever the file system throws
 */
export function spoolCalls(folder: string, rows: readonly CallRow[], id: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const path = join(folder, `unwritten-calls-${id}.jsonl`);
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  writeFileSync(path, text, { mode: privateMode, flag: 'wx', flush: true });
  return path;
}

/**
 * Stores the records that an earlier process put aside, and deletes the files. Several processes may do so at once: a
 * stored record is not written again. Returns the number of records and of unreadable lines.
 * @throws StoreFault; the file then stays for the next start
 */
export async function writeSpooledCalls(folder: string, write: CallWriter['write']) {
  const counts = { rows: 0, unreadable: 0 };
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!names.test(name)) continue;
    const path = join(folder, name);
    const rows = readRows(path);
    for (let at = 0; at < rows.good.length; at += batchRows) await write(rows.good.slice(at, at + batchRows));
    rmSync(path, { force: true });
    counts.rows += rows.good.length;
    counts.unreadable += rows.unreadable;
  }
  return counts;
}

/** The process may have been killed while it wrote the last line. */
function readRows(path: string): { good: CallRow[]; unreadable: number } {
  const lines = readLines(path);
  const rows = lines.map(readRow);
  const good = rows.filter((row) => row !== undefined);
  return { good, unreadable: rows.length - good.length };
}

/** Another process may have deleted it. */
function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function readRow(line: string): CallRow | undefined {
  try {
    const found = JSON.parse(line) as CallRow;
    return recordColumns.every((column) => column in found) ? found : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
