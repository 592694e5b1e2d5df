import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';

/** The lines of a backup file. */
export function backupLines(file: string): string[] {
  return gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
}

/** The rows of each table, in a fixed order, as lines. */
export function backupRows(file: string): Map<string, string[]> {
  const rows = new Map<string, string[]>();
  let table: string[] = [];
  for (const line of backupLines(file).slice(1, -1)) {
    if (line.startsWith('[')) table.push(line);
    else {
      table = [];
      rows.set((JSON.parse(line) as { table: string }).table, table);
    }
  }
  for (const lines of rows.values()) lines.sort();
  return rows;
}

/** Writes lines as a backup; the last line gets the hash of what is before it. */
export function writeBackup(file: string, lines: readonly string[]): void {
  const content = lines.slice(0, -1).map((line) => `${line}\n`);
  const sha256 = createHash('sha256').update(content.join('')).digest('hex');
  const end = { ...(JSON.parse(lines.at(-1) ?? '') as object), sha256 };
  writeFileSync(file, gzipSync(`${content.join('')}${JSON.stringify(end)}\n`));
}
