import { type Command, InvalidArgumentError } from 'commander';
import type { ReadBackup } from '../../app/backups.ts';
import type { KeyOperator, MasterKeyStatus } from '../../app/keys/master-keys.ts';
import type { Resealed } from '../../app/keys/reseal.ts';
import { programName } from '../../version.ts';
import { addAcceptLoss } from '../accept-loss.ts';
import { jsonOption } from '../options.ts';
import { note, print, printJson, tableOf } from '../print.ts';

type Options = { json?: true; discard?: string; withoutRecords?: true; unverified?: true };

const onDatabase = 'directly on the database (DATA_DIR or DATABASE_URL)';

export function addBackup(program: Command): void {
  addAcceptLoss(program.command('backup'))
    .description(`write the whole database to a file, also while the service runs, ${onDatabase}`)
    .argument('<file>', 'new file, or - for standard output')
    .option('--without-records', 'leave out records of calls, their counts and captured calls')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The master key is not in it, but signs it: set MASTER_KEY or MASTER_KEY_FILE as for the service; in local mode DATA_DIR
is enough. Keep the key in another place: without it the secrets of a backup cannot be opened.

Examples:
  toolhost backup toolhost-$(date +%F).backup
  toolhost backup - | age -r age1… > toolhost.backup.age`,
    )
    .action(backup);
  program
    .command('restore')
    .description(`fill an empty database with a backup, of either engine, ${onDatabase}`)
    .argument('<file>', 'backup, or - for standard input')
    .option('--unverified', 'accept a backup whose signature is missing or cannot be verified')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
A database with anything in it is refused. A backup of an older version is migrated to this one. The signature is verified
with MASTER_KEY or MASTER_KEY_FILE, or master.key in DATA_DIR, before anything is restored.

Examples:
  DATA_DIR=./restored toolhost restore toolhost.backup
  DATABASE_URL=postgres://… toolhost restore toolhost.backup`,
    )
    .action(restore);
  program
    .command('verify')
    .description(
      'restore a backup into a temporary database, and try its signature and sealed values with the master keys',
    )
    .argument('<file>', 'backup, or - for standard input')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The keys are those of MASTER_KEY or MASTER_KEY_FILE, or of master.key in DATA_DIR. The temporary database is in TMPDIR
and as large as the service's own. The exit code is 1 when the file is damaged, changed or not signed, or a value cannot be
opened.

Examples:
  MASTER_KEY_FILE=key toolhost verify toolhost.backup`,
    )
    .action(verify);
}

async function backup(file: string, { json, withoutRecords }: Options): Promise<void> {
  const { makeBackup } = await import('../../app/backups.ts');
  const made = await makeBackup(process.env, file, { leavesOutRecords: withoutRecords === true });
  // Standard output has the backup itself.
  const report = file === '-' ? note : print;
  const tables = Object.keys(made.rows).length;
  if (json) return report(JSON.stringify(made));
  report(`Wrote ${sumOf(made.rows)} rows of ${tables} tables. Check it with: ${programName} verify ${file}`);
  if (made.signed_with === undefined) note(notSigned);
  if (made.not_noted !== undefined)
    note(`The database did not store the time of this backup, so the metric does not show it: ${made.not_noted}`);
}

const notSigned =
  'The backup is not signed, because there is no master key here, so restoring it will need --unverified. Set MASTER_KEY or MASTER_KEY_FILE as for the service.';

async function restore(file: string, { json, unverified }: Options): Promise<void> {
  const { restoreBackup } = await import('../../app/backups.ts');
  const done = await restoreBackup(process.env, file, { unverified: unverified === true });
  if (json) return printJson(done);
  print([`Restored ${contentOf(done)}.`, signatureText(done), ...keyLines(done), revoked].join('\n'));
}

const revoked = 'API keys, logins and members that were removed after the backup was made are back: remove them again.';

async function verify(file: string, { json }: Options): Promise<void> {
  const { verifyBackup } = await import('../../app/backups.ts');
  const found = await verifyBackup(process.env, file);
  if (json) printJson(found);
  else print([`${soundness(found)}: ${contentOf(found)}.`, signatureText(found), ...keyLines(found)].join('\n'));
  // Without a key here, neither the signature nor a value is tried.
  const isVerified = found.signature === 'valid' || (found.signature === 'unknown_key' && !found.tried);
  if (!isVerified || Object.keys(found.unreadable).length > 0) process.exitCode = 1;
}

function soundness({ signature }: ReadBackup): string {
  if (signature === 'valid') return 'Sound';
  return signature === 'changed' ? 'Not sound' : 'Complete, but not verified';
}

function signatureText({ signature, signed_with: key = '' }: ReadBackup): string {
  const texts = {
    valid: `Signed with the key ${key}, and unchanged since.`,
    changed: `Changed after it was signed with the key ${key}.`,
    unknown_key: `Signed with the key ${key}, which is missing here, so changes cannot be ruled out.`,
    missing: 'Not signed, so changes cannot be ruled out.',
  };
  return texts[signature];
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

export function addMasterKey(program: Command): void {
  const masterKey = program
    .command('master-key')
    .description(
      'see and change which master key seals the secrets, directly on the database (DATA_DIR or DATABASE_URL)',
    );
  addAcceptLoss(masterKey.command('status'))
    .description('show the keys by their ids, and how many values of each table are sealed with them')
    .addOption(jsonOption())
    .action(status);
  addAcceptLoss(masterKey.command('reseal'))
    .description('seal everything with the first key of MASTER_KEY, also while the service runs')
    .option('--discard <key id>', 'first give up what this key sealed, which is lost for good', keyId)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
MASTER_KEY or MASTER_KEY_FILE must be set as for the service; in local mode DATA_DIR is enough.

To replace a key, in this order:
  1. start every process with MASTER_KEY=old,new
  2. start every process with MASTER_KEY=new,old
  3. toolhost master-key reseal
  4. start every process with MASTER_KEY=new`,
    )
    .action(reseal);
}

function keyId(text: string): string {
  if (/^[0-9a-f]{8}$/.test(text)) return text;
  throw new InvalidArgumentError(
    `allowed: the id of a key as "${programName} master-key status" shows it, 8 hex digits`,
  );
}

async function withKeys(work: (operator: KeyOperator) => Promise<void>): Promise<void> {
  const { openKeyOperator } = await import('../../app/keys/master-keys.ts');
  const operator = await openKeyOperator(process.env);
  try {
    await work(operator);
  } finally {
    await operator.store.close();
  }
}

async function status({ json }: Options): Promise<void> {
  await withKeys(async (operator) => {
    const { masterKeyStatus } = await import('../../app/keys/master-keys.ts');
    const found = await masterKeyStatus(operator);
    if (json) printJson(found);
    else print(statusText(found));
  });
}

function statusText({ keys, unreadable_secrets: unreadable }: MasterKeyStatus): string {
  if (keys.length === 0) return 'Nothing is sealed yet, and there is no master key in this environment.';
  const tables = Object.keys(keys[0]?.rows ?? {});
  const counts = tables.map((name) => [name, (key: MasterKeyStatus['keys'][number]) => key.rows[name] ?? 0] as const);
  const overview = tableOf(keys, { key: 'id', state: stateOf, ...Object.fromEntries(counts) });
  if (unreadable.length === 0) return overview;
  const list = unreadable.map(({ slug, name, key }) => `  ${slug}: ${name} (${key})`).join('\n');
  return `${overview}\n\nSecrets that no key of this environment opens:\n${list}`;
}

function stateOf({ in_ring, opens, seals }: MasterKeyStatus['keys'][number]): string {
  if (!in_ring) return 'missing here';
  if (!opens) return 'another key';
  return seals ? 'seals' : 'opens';
}

async function reseal({ json, discard }: Options): Promise<void> {
  await withKeys(async (operator) => {
    const resealing = await import('../../app/keys/reseal.ts');
    const discarded = discard === undefined ? undefined : await resealing.discard(operator, discard);
    const done = await resealing.reseal(operator);
    if (json) printJson({ ...done, ...(discarded && { discarded }) });
    else print(resealedText(done, discarded));
    if (done.left.length > 0) process.exitCode = 1;
  });
}

function resealedText(done: Resealed, discarded: { [table: string]: number } | undefined): string {
  const counts = (rows: { [table: string]: number }) =>
    Object.entries(rows)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  const lines = [
    ...(discarded ? [`Given up: ${counts(discarded)}.`] : []),
    `Sealed anew with ${done.sealing_key}: ${counts(done.resealed)}.`,
    ...done.unused_keys.map((id) => `Nothing is sealed with ${id} any more: it may be left out.`),
    ...done.left.map(({ key, table: name, rows, in_ring }) =>
      in_ring
        ? `Left: ${rows} rows of ${name} with ${key}. A process still seals with that key, or they do not open; run this again.`
        : `Left: ${rows} rows of ${name} with ${key}, which is not in MASTER_KEY here.`,
    ),
  ];
  return lines.join('\n');
}
