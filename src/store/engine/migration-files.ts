import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One file of `migrations/`. */
export type MigrationFile = {
  name: string;
  statements: string[];
  /** SHA-256 of the statements in hex. Comments are left out, so they may be improved. */
  checksum: string;
  /** The oldest version that works on a database with this migration without knowing it; undefined where none does. */
  readableBy: string | undefined;
};

/** The migrations of a folder in the order of their names, which is the order in which they are applied. */
export function readMigrations(folder: string): MigrationFile[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => migrationOf(name, readFileSync(join(folder, name), 'utf8')));
}

function migrationOf(name: string, text: string): MigrationFile {
  const all = statements(text);
  const plain = all.map((statement) => statement.replaceAll(/\s*\n\s*/g, '\n')).join(';\n');
  return {
    name,
    statements: all,
    checksum: createHash('sha256').update(plain).digest('hex'),
    readableBy: /^-- readable-by: (\d+\.\d+\.\d+)\s*$/m.exec(text)?.[1],
  };
}

/** The tables that migrations create, each after those that it refers to. */
export function tablesOf(files: readonly MigrationFile[]): string[] {
  const names = files
    .flatMap((file) => file.statements)
    .map((statement) => /^create table (\w+)/i.exec(statement)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(names)];
}

/** The statements of a migration: they end in `;` at the end of a line, comments have lines of their own. */
export function statements(text: string): string[] {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(/^\s*--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/** Whether version `a` is at least `b`, by its three numbers (Semantic Versioning 2.0.0, 11). */
export function isAtLeast(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).slice(0, 3).map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
