import type { Command } from 'commander';
import type { ReadBackup } from '../../app/backups.ts';
import { programName } from '../../version.ts';
import { jsonOption } from '../connection/connection.ts';
import { note, print, printJson } from '../print/print.ts';

type Options = { json?: true };

const onDatabase = 'directly on the database (DATA_DIR or DATABASE_URL)';

export function addBackup(program: Command): void {
  program
    .command('backup')
    .description(`write the whole database to a file, also while the service runs, ${onDatabase}`)
    .argument('<file>', 'new file, or - for standard output')
    .option('--without-records', 'leave out records of calls, their counts and captured calls')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The master key is not in it. Keep that in another place: without it the secrets of a backup cannot be opened.

Examples:
  toolhost backup toolhost-$(date +%F).backup
  toolhost backup - | age -r age1… > toolhost.backup.age`,
    )
    .action(backup);
  program
    .command('restore')
    .description(`fill an empty database with a backup, of either engine, ${onDatabase}`)
    .argument('<file>', 'backup, or - for standard input')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
A database with anything in it is refused. A backup of an older version is migrated to this one.

Examples:
  DATA_DIR=./restored toolhost restore toolhost.backup
  DATABASE_URL=postgres://… toolhost restore toolhost.backup`,
    )
    .action(restore);
  program
    .command('verify')
    .description('restore a backup into a temporary database, and try every sealed value with the master keys')
    .argument('<file>', 'backup, or - for standard input')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The keys are those of MASTER_KEY or MASTER_KEY_FILE, or of master.key in DATA_DIR. The temporary database is in TMPDIR
and as large as the service's own. The exit code is 1 when the file is damaged or a value cannot be opened.

Examples:
  MASTER_KEY_FILE=key toolhost verify toolhost.backup`,
    )
    .action(verify);
}

async function backup(file: string, { json, withoutRecords }: Options & { withoutRecords?: true }): Promise<void> {
  const { makeBackup } = await import('../../app/backups.ts');
  const made = await makeBackup(process.env, file, { leavesOutRecords: withoutRecords === true });
  // Standard output has the backup itself.
  const report = file === '-' ? note : print;
  const tables = Object.keys(made.rows).length;
  if (json) report(JSON.stringify(made));
  else report(`Wrote ${sumOf(made.rows)} rows of ${tables} tables. Check it with: ${programName} verify ${file}`);
}

async function restore(file: string, { json }: Options): Promise<void> {
  const { restoreBackup } = await import('../../app/backups.ts');
  const done = await restoreBackup(process.env, file);
  if (json) return printJson(done);
  print([`Restored ${contentOf(done)}.`, ...keyLines(done), revoked].join('\n'));
}

const revoked = 'API keys, logins and members that were removed after the backup was made are back: remove them again.';

async function verify(file: string, { json }: Options): Promise<void> {
  const { verifyBackup } = await import('../../app/backups.ts');
  const found = await verifyBackup(process.env, file);
  if (json) printJson(found);
  else print([`Sound: ${contentOf(found)}.`, ...keyLines(found)].join('\n'));
  if (Object.keys(found.unreadable).length > 0) process.exitCode = 1;
}

function contentOf({ rows, made_at, version, engine }: ReadBackup): string {
  const name = engine === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  return `${sumOf(rows)} rows of ${Object.keys(rows).length} tables, made ${made_at} by version ${version} on ${name}`;
}

function sumOf(rows: { [table: string]: number }): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}

/** What the master keys of this environment open, and what they do not. */
function keyLines({ keys, tried, unreadable, unreadable_secrets: secrets }: ReadBackup): string[] {
  const counts = (rows: { [table: string]: number }) =>
    Object.entries(rows)
      .map(([table, count]) => `${count} ${table}`)
      .join(', ') || 'nothing';
  return [
    ...keys.map(({ id, in_ring, rows }) => `Key ${id}, ${in_ring ? 'which is here' : 'missing here'}: ${counts(rows)}`),
    ...(tried ? [] : ['There is no master key here, so no sealed value was tried.']),
    ...(Object.keys(unreadable).length === 0 ? [] : [`The keys here do not open: ${counts(unreadable)}`]),
    ...secrets.map(({ slug, name, key }) => `  ${slug}: ${name} (${key})`),
  ];
}
