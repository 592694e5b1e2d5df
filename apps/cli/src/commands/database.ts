import {
  type BackupReport,
  type KeyOperator,
  loadBackups,
  loadMasterKeys,
  loadResealing,
  type MasterKeyStatus,
  programName,
  type ResealResult,
} from '@toolhost/server/command-line';
import { type Command, InvalidArgumentError } from 'commander';
import { addAcceptLossOption } from '../accept-loss.ts';
import { createJsonOption } from '../options.ts';
import { formatTable, print, printJson, printMessage } from '../print.ts';
import { onDatabasePhrase } from './keys.ts';

type Options = { json?: true; discard?: string; withoutRecords?: true; unverified?: true };

export function addBackup(program: Command): void {
  addAcceptLossOption(program.command('backup'))
    .description(`back up the whole database to a file, even while the service runs, ${onDatabasePhrase}`)
    .argument('<file>', 'file to create, or - for standard output')
    .option('--without-records', 'omit call records, call counts, and captures')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
The backup is signed with the master key but does not contain it. Set MASTER_KEY or MASTER_KEY_FILE as for the service;
in local mode, DATA_DIR is enough. Store the key elsewhere: without it, the secrets in a backup cannot be decrypted.

Examples:
  toolhost backup toolhost-$(date +%F).backup
  toolhost backup - | age -r age1… > toolhost.backup.age`,
    )
    .action(runBackup);
  program
    .command('restore')
    .description(`restore a backup from either database engine into an empty database, ${onDatabasePhrase}`)
    .argument('<file>', 'backup file, or - for standard input')
    .option('--unverified', 'accept a backup whose signature is missing or cannot be verified')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
The database must be empty. A backup from an older version is migrated to this version. Before anything is restored, the
signature is verified with MASTER_KEY or MASTER_KEY_FILE, or master.key in DATA_DIR.

Examples:
  DATA_DIR=./restored toolhost restore toolhost.backup
  DATABASE_URL=postgres://… toolhost restore toolhost.backup`,
    )
    .action(runRestore);
  program
    .command('verify')
    .description(
      'restore a backup into a temporary database, and check its signature and sealed values with the master keys',
    )
    .argument('<file>', 'backup file, or - for standard input')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Uses the keys in MASTER_KEY or MASTER_KEY_FILE, or in master.key in DATA_DIR. The temporary database is created in TMPDIR
and is as large as the service's database. Exits with 1 if the file is damaged, modified, or unsigned, or if a value
cannot be decrypted.

Examples:
  MASTER_KEY_FILE=key toolhost verify toolhost.backup`,
    )
    .action(runVerify);
}

async function runBackup(file: string, { json, withoutRecords }: Options): Promise<void> {
  const { createBackup } = await loadBackups();
  const backupInfo = await createBackup(process.env, file, { excludesRecords: withoutRecords === true });
  // With `-`, standard output carries the backup itself.
  const report = file === '-' ? printMessage : print;
  const tables = Object.keys(backupInfo.rows).length;
  if (json) return report(JSON.stringify(backupInfo));
  report(`Wrote ${sumRows(backupInfo.rows)} rows of ${tables} tables. Check it with: ${programName} verify ${file}`);
  if (backupInfo.signed_with === undefined) printMessage(unsignedWarning);
  if (backupInfo.not_noted !== undefined)
    printMessage(
      `The time of this backup could not be stored, so the metric does not show it: ${backupInfo.not_noted}`,
    );
}

const unsignedWarning =
  'The backup is not signed, because no master key is set, so restoring it requires --unverified. Set MASTER_KEY or MASTER_KEY_FILE as for the service.';

async function runRestore(file: string, { json, unverified }: Options): Promise<void> {
  const { restoreBackup } = await loadBackups();
  const restored = await restoreBackup(process.env, file, { unverified: unverified === true });
  if (json) return printJson(restored);
  print([...formatReport('Restored ', restored), revokedWarning].join('\n'));
}

const revokedWarning =
  'API keys, logins, and members that were removed after the backup was made are restored, too. Remove them again.';

async function runVerify(file: string, { json }: Options): Promise<void> {
  const { verifyBackup } = await loadBackups();
  const verification = await verifyBackup(process.env, file);
  if (json) printJson(verification);
  else print(formatReport(`${verdicts[verification.signature]}: `, verification).join('\n'));
  // Without a key, neither the signature nor the values can be checked.
  const isVerified =
    verification.signature === 'valid' || (verification.signature === 'unknown_key' && !verification.tried);
  if (!isVerified || Object.keys(verification.unreadable).length > 0) process.exitCode = 1;
}

const verdicts = {
  valid: 'Valid',
  changed: 'Not valid',
  unknown_key: 'Complete, but not verified',
  missing: 'Complete, but not verified',
};

/** Formats the contents and the signature of a backup, and the values that cannot be decrypted here. */
function formatReport(start: string, report: BackupReport): string[] {
  const { rows, made_at, version, engine, signature, signed_with: key = '' } = report;
  const { keys, tried, unreadable, unreadable_secrets: secrets } = report;
  const name = engine === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  const signatures = {
    valid: `Signed with the key ${key} and not modified since.`,
    changed: `Modified after it was signed with the key ${key}.`,
    unknown_key: `Signed with the key ${key}, which is not available here, so modifications cannot be ruled out.`,
    missing: 'Not signed, so modifications cannot be ruled out.',
  };
  const unreadableCounts = formatCounts(unreadable);
  return [
    `${start}${sumRows(rows)} rows of ${Object.keys(rows).length} tables, created ${made_at} by version ${version} on ${name}.`,
    signatures[signature],
    ...keys.map(
      (status) =>
        `Key ${status.id}, ${status.in_ring ? 'available' : 'missing'}: ${formatCounts(status.rows) || 'nothing'}`,
    ),
    ...(tried ? [] : ['No master key is set, so no sealed value was checked.']),
    ...(unreadableCounts ? [`Cannot be decrypted with the available keys: ${unreadableCounts}`] : []),
    ...secrets.map(({ slug, name, key }) => `  ${slug}: ${name} (${key})`),
  ];
}

function formatCounts(rows: { [table: string]: number }): string {
  return Object.entries(rows)
    .map(([table, count]) => `${count} ${table}`)
    .join(', ');
}

function sumRows(rows: { [table: string]: number }): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0);
}

export function addMasterKey(program: Command): void {
  const masterKey = program
    .command('master-key')
    .description(`show and change which master key seals the secrets, ${onDatabasePhrase}`);
  addAcceptLossOption(masterKey.command('status'))
    .description('show the key IDs and how many values of each table are sealed with each key')
    .addOption(createJsonOption())
    .action(showStatus);
  addAcceptLossOption(masterKey.command('reseal'))
    .description('reseal everything with the first key of MASTER_KEY, even while the service runs')
    .option('--discard <key id>', 'first delete everything that is sealed with this key, permanently', parseKeyId)
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
MASTER_KEY or MASTER_KEY_FILE must be set as for the service; in local mode, DATA_DIR is enough.

To replace a key, follow these steps in order:
  1. start every process with MASTER_KEY=old,new
  2. start every process with MASTER_KEY=new,old
  3. toolhost master-key reseal
  4. start every process with MASTER_KEY=new`,
    )
    .action(runReseal);
}

function parseKeyId(text: string): string {
  if (/^[0-9a-f]{8}$/.test(text)) return text;
  throw new InvalidArgumentError(`allowed: a key ID as shown by "${programName} master-key status", 8 hex digits`);
}

async function withKeyOperator(work: (operator: KeyOperator) => Promise<void>): Promise<void> {
  const { openKeyOperator } = await loadMasterKeys();
  const operator = await openKeyOperator(process.env);
  try {
    await work(operator);
  } finally {
    await operator.store.close();
  }
}

async function showStatus({ json }: Options): Promise<void> {
  await withKeyOperator(async (operator) => {
    const { getMasterKeyStatus } = await loadMasterKeys();
    const keyStatus = await getMasterKeyStatus(operator);
    if (json) printJson(keyStatus);
    else print(formatStatus(keyStatus));
  });
}

function formatStatus({ keys, unreadable_secrets: unreadable }: MasterKeyStatus): string {
  if (keys.length === 0) return 'Nothing is sealed yet, and no master key is set in this environment.';
  const tables = Object.keys(keys[0]?.rows ?? {});
  const columns = tables.map((name) => [name, (key: MasterKeyStatus['keys'][number]) => key.rows[name] ?? 0] as const);
  const overview = formatTable(keys, { key: 'id', state: formatState, ...Object.fromEntries(columns) });
  if (unreadable.length === 0) return overview;
  const secretLines = unreadable.map(({ slug, name, key }) => `  ${slug}: ${name} (${key})`).join('\n');
  return `${overview}\n\nSecrets that cannot be decrypted with the keys of this environment:\n${secretLines}`;
}

function formatState({ in_ring, opens, seals }: MasterKeyStatus['keys'][number]): string {
  if (!in_ring) return 'missing';
  if (!opens) return 'different key';
  return seals ? 'seals' : 'decrypts';
}

async function runReseal({ json, discard }: Options): Promise<void> {
  await withKeyOperator(async (operator) => {
    const { discardKey, reseal } = await loadResealing();
    const discarded = discard === undefined ? undefined : await discardKey(operator, discard);
    const resealed = await reseal(operator);
    if (json) printJson({ ...resealed, ...(discarded && { discarded }) });
    else print(formatResealed(resealed, discarded));
    if (resealed.left.length > 0) process.exitCode = 1;
  });
}

function formatResealed(result: ResealResult, discarded: { [table: string]: number } | undefined): string {
  const lines = [
    ...(discarded ? [`Deleted: ${formatCounts(discarded)}.`] : []),
    `Resealed with ${result.sealing_key}: ${formatCounts(result.resealed)}.`,
    ...result.unused_keys.map((id) => `Nothing is sealed with ${id} any more. You can remove it from MASTER_KEY.`),
    ...result.left.map(({ key, table: name, rows, in_ring }) =>
      in_ring
        ? `Not resealed: ${rows} rows of ${name} with ${key}. Either a process still seals with that key, or the rows cannot be decrypted. Run this command again.`
        : `Not resealed: ${rows} rows of ${name} with ${key}, which is not in MASTER_KEY.`,
    ),
  ];
  return lines.join('\n');
}
