import { AppError } from '../../errors.ts';
import { type FaultKind, faultKindOf, reasonOf, StoreFault } from './faults.ts';

/** Why a database could not be opened, for the person who starts the program. `file` is undefined for PostgreSQL. */
export function openingFailure(thrown: unknown, file: string | undefined): unknown {
  if (thrown instanceof AppError && !(thrown instanceof StoreFault)) return thrown;
  const cause = thrown instanceof StoreFault ? thrown.cause : thrown;
  const sentence = file === undefined ? postgresSentence(cause) : sqliteSentence(cause, file);
  return sentence === undefined ? thrown : new AppError('unavailable', sentence, { cause });
}

const sqliteSentences: { readonly [kind in FaultKind]?: string } = {
  corrupt: 'is damaged or not a SQLite database; restore it from a backup, or move it away to begin with an empty one',
  read_only: 'cannot be written; let the user that runs toolhost write in its folder, or set DATA_DIR to another one',
  unavailable: 'cannot be opened; let the user that runs toolhost write in its folder, or set DATA_DIR to another one',
  full: 'cannot be written because the disk is full; free some space, then start again',
  io: 'cannot be read or written; look for faults of the disk in the log of the system',
  busy: 'is locked by another program; stop that, then start again',
};

function sqliteSentence(error: unknown, file: string): string | undefined {
  const { code = '' } = error as NodeJS.ErrnoException;
  const isSystem = /^(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|EISDIR|ENOSPC|ENOENT|ELOOP|ENAMETOOLONG)$/.test(code);
  const kind = code === 'ENOSPC' ? 'full' : isSystem ? 'unavailable' : faultKindOf(error);
  const what = sqliteSentences[kind];
  return what && `the database ${file} ${what} (${reasonOf(error)})`;
}

function postgresSentence(error: unknown): string | undefined {
  const reason = reasonOf(error);
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  if (/^28/.test(code)) return `PostgreSQL refuses the user or password of DATABASE_URL: ${reason}`;
  if (code === '3D000') return `PostgreSQL has no such database; create it, or correct DATABASE_URL: ${reason}`;
  if (code === '42501')
    return `the user of DATABASE_URL may not do what toolhost needs; let it create tables in the schema: ${reason}`;
  if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL/.test(code))
    return `the TLS certificate of the database is not trusted: ${reason}; set DATABASE_CA_FILE to the certificate of the authority that signed it`;
  if (/does not support SSL/.test(reason))
    return 'the database does not speak TLS, which DATABASE_URL or DATABASE_CA_FILE asks for; switch it on there, or leave it out here';
  const kind = faultKindOf(error);
  if (kind === 'connections')
    return `PostgreSQL takes no more connections; each process of toolhost uses up to DATABASE_POOL of them: ${reason}`;
  return kind === 'unavailable' ? `the database does not answer: ${reason}` : undefined;
}
