import { type Command, InvalidArgumentError } from 'commander';
import type { KeyOperator, MasterKeyStatus } from '../../app/keys/master-keys.ts';
import type { Resealed } from '../../app/keys/reseal.ts';
import { jsonOption } from '../connection/connection.ts';
import { print, printJson, table } from '../print/print.ts';

type Options = { json?: true; discard?: string };

export function addMasterKey(program: Command): void {
  const masterKey = program
    .command('master-key')
    .description(
      'see and change which master key seals the secrets, directly on the database (DATA_DIR or DATABASE_URL)',
    );
  masterKey
    .command('status')
    .description('show the keys by their ids, and how many values of each table are sealed with them')
    .addOption(jsonOption())
    .action(status);
  masterKey
    .command('reseal')
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
  throw new InvalidArgumentError('allowed: the id of a key as "toolhost master-key status" shows it, 8 hex digits');
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
  const rows = keys.map((key) => [key.id, stateOf(key), ...tables.map((name) => String(key.rows[name] ?? 0))]);
  const overview = table(['KEY', 'STATE', ...tables.map((name) => name.toUpperCase())], rows);
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
