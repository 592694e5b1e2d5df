import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';

/** Returns the lines of a backup file. */
export function readBackupLines(file: string): string[] {
  return gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
}

/** Returns the rows of each table as sorted lines, without the header, the end, and the signature. */
export function readBackupRows(file: string): Map<string, string[]> {
  const rows = new Map<string, string[]>();
  let table: string[] = [];
  for (const line of readBackupLines(file).slice(1, -2)) {
    if (line.startsWith('[')) table.push(line);
    else {
      table = [];
      rows.set((JSON.parse(line) as { table: string }).table, table);
    }
  }
  for (const lines of rows.values()) lines.sort();
  return rows;
}

/** Writes lines as a backup file. */
export function writeBackup(file: string, lines: readonly string[]): void {
  writeFileSync(file, gzipSync(lines.map((line) => `${line}\n`).join('')));
}
