import { AppError, getErrorMessage } from '@toolhost/errors/errors';

/** Kinds of database errors. */
export const databaseErrorKinds = [
  'unavailable',
  'connections',
  'full',
  'read_only',
  'corrupt',
  'io',
  'busy',
  'serialization',
  'constraint',
  'internal',
] as const;

export type DatabaseErrorKind = (typeof databaseErrorKinds)[number];

type DriverError = Error & { code?: string; errcode?: number; severity?: string; errors?: readonly DriverError[] };

/** SQLite primary result codes (sqlite.org/rescode.html): the lowest byte of the reported code. */
const sqliteKinds: { readonly [code: number]: DatabaseErrorKind } = {
  5: 'busy',
  6: 'busy',
  7: 'unavailable',
  8: 'read_only',
  10: 'io',
  11: 'corrupt',
  13: 'full',
  14: 'unavailable',
  19: 'constraint',
  23: 'read_only',
  26: 'corrupt',
};

/** SQLSTATE codes (PostgreSQL, appendix A). The first match wins. */
const postgresKinds: readonly (readonly [state: RegExp, kind: DatabaseErrorKind])[] = [
  [/^53100$/, 'full'],
  [/^53300$/, 'connections'],
  [/^25006$/, 'read_only'],
  [/^(40001|40P01)$/, 'serialization'],
  [/^(55P03|57014)$/, 'busy'],
  [/^XX00[12]$/, 'corrupt'],
  [/^58/, 'io'],
  [/^23/, 'constraint'],
  // Connection exceptions, wrong credentials, missing database, insufficient resources, a database that is not ready
  // (55000: it accepts no connections), shutdown, and a transaction that idled too long.
  [/^(08|28|3D|53|55|57|25P0[34])/, 'unavailable'],
];

/** Errors of the connection itself: system errors, TLS errors, and those that pg and Kysely report only by message. */
const connectionCodes =
  /^(E[A-Z]+|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+|ERR_TLS_\w+|ERR_SSL_\w+|ERR_STREAM_\w+)$/;
const connectionMessages =
  /Connection terminated|is not queryable|timeout exceeded when trying to connect|timeout expired|connection error|driver has already been destroyed|does not support SSL|establishing an SSL|after calling end on the pool|database is not open|a thread of the database has ended/;

/** Returns the kind of a driver's error. */
export function getDatabaseErrorKind(error: unknown): DatabaseErrorKind {
  if (!(error instanceof Error)) return 'internal';
  const { code = '', errcode, message, errors } = error as DriverError;
  if (errcode !== undefined) return sqliteKinds[errcode & 0xff] ?? 'internal';
  const postgresMatch = postgresKinds.find(([state]) => code.length === 5 && state.test(code));
  if (postgresMatch) return postgresMatch[1];
  if (connectionCodes.test(code) || connectionMessages.test(message)) return 'unavailable';
  return errors?.some((inner) => getDatabaseErrorKind(inner) === 'unavailable') ? 'unavailable' : 'internal';
}

/** Messages for clients. Kinds without a message are bugs in this program. */
const clientMessages: { readonly [kind in DatabaseErrorKind]?: { message: string; retryAfterS?: number } } = {
  unavailable: { message: 'the database does not respond; try again in a moment', retryAfterS: 2 },
  connections: { message: 'the database has no free connections; try again in a moment', retryAfterS: 5 },
  full: {
    message: 'the disk is full, so only reads and calls work; try again when the operator has freed space',
    retryAfterS: 30,
  },
  read_only: {
    message: 'the database is read-only, so only reads and calls work; try again in a moment',
    retryAfterS: 10,
  },
  io: { message: 'the database disk failed; try again in a moment', retryAfterS: 10 },
  busy: { message: 'the database is busy with other changes; try again in a moment', retryAfterS: 2 },
  serialization: { message: 'another change was made at the same time; try again', retryAfterS: 1 },
  corrupt: { message: 'the database is damaged; the operator must restore it from a backup' },
};

/** Database error as clients see it: 500 if only the operator can fix it, otherwise 503. */
export class DatabaseError extends AppError {
  readonly errorKind: DatabaseErrorKind;
  /** True if the statement may have been executed, because the connection was lost before the reply. */
  isOutcomeUnknown = false;

  constructor(kind: DatabaseErrorKind, message: string, options: { retryAfterS?: number; cause: unknown }) {
    super(kind === 'corrupt' ? 'internal' : 'unavailable', message, options);
    this.name = 'StoreFault';
    this.errorKind = kind;
  }
}

/**
 * Converts a driver's error to the error to throw. Bugs in this program remain unchanged, so that they are logged with
 * their stack.
 */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const kind = getDatabaseErrorKind(error);
  const clientMessage = clientMessages[kind];
  return clientMessage ? new DatabaseError(kind, clientMessage.message, { ...clientMessage, cause: error }) : error;
}

/** Errors of a connection that was lost before the statement was sent. */
const unsentMessages = /is not queryable|driver has already been destroyed|database is not open/;

/**
 * Converts the error of a failed COMMIT. If the connection is lost after COMMIT was sent, the database may have stored
 * the change. The error therefore neither suggests a retry nor has a `Retry-After` that would cause one.
 */
export function toCommitError(error: unknown): unknown {
  const isOutcomeUnknown =
    getDatabaseErrorKind(error) === 'unavailable' && !unsentMessages.test(getErrorMessage(error));
  if (!isOutcomeUnknown) return toDatabaseError(error);
  const message =
    'the connection to the database was lost during the commit, so the change may or may not have been stored; check before you try again';
  return new DatabaseError('unavailable', message, { cause: error });
}

/**
 * Returns true if a statement that failed with this error may have been executed. An error that the server itself
 * reports ended the statement.
 */
export function mayHaveExecuted(error: unknown): boolean {
  const isReportedByServer = (error as DriverError).severity !== undefined;
  return (
    !isReportedByServer && getDatabaseErrorKind(error) === 'unavailable' && !unsentMessages.test(getErrorMessage(error))
  );
}

/**
 * Returns the messages of an error and of the errors that it contains. A host with several addresses fails once for
 * each of them.
 */
export function getErrorReason(error: unknown): string {
  const { errors } = error as DriverError;
  return errors && errors.length > 0 ? [...new Set(errors.map(getErrorMessage))].join('; ') : getErrorMessage(error);
}

/** Returns an error that tells the operator why a database could not be opened. `file` is undefined for PostgreSQL. */
export function toOpenError(error: unknown, file: string | undefined): unknown {
  if (error instanceof AppError && !(error instanceof DatabaseError)) return error;
  const cause = error instanceof DatabaseError ? error.cause : error;
  const openMessage = file === undefined ? formatPostgresError(cause) : formatSqliteError(cause, file);
  return openMessage === undefined ? error : new AppError('unavailable', openMessage, { cause });
}

const sqliteOpenMessages: { readonly [kind in DatabaseErrorKind]?: string } = {
  corrupt: 'is damaged or not a SQLite database; restore it from a backup, or move it away to start with an empty one',
  read_only:
    'cannot be written; allow the user that runs toolhost to write to its folder, or set DATA_DIR to another folder',
  unavailable:
    'cannot be opened; allow the user that runs toolhost to write to its folder, or set DATA_DIR to another folder',
  full: 'cannot be written because the disk is full; free some space, then restart',
  io: 'cannot be read or written; check the system log for disk failures',
  busy: 'is locked by another program; stop that program, then restart',
};

function formatSqliteError(error: unknown, file: string): string | undefined {
  const { code = '' } = error as NodeJS.ErrnoException;
  const isSystemError = /^(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|EISDIR|ENOSPC|ENOENT|ELOOP|ENAMETOOLONG)$/.test(code);
  const systemKind = code === 'ENOSPC' ? 'full' : 'unavailable';
  const problem = sqliteOpenMessages[isSystemError ? systemKind : getDatabaseErrorKind(error)];
  return problem && `the database ${file} ${problem} (${getErrorReason(error)})`;
}

function formatPostgresError(error: unknown): string | undefined {
  const reason = getErrorReason(error);
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  if (/^28/.test(code)) return `PostgreSQL rejected the user or password in DATABASE_URL: ${reason}`;
  if (code === '3D000') return `the PostgreSQL database does not exist; create it, or correct DATABASE_URL: ${reason}`;
  if (code === '42501')
    return `the user in DATABASE_URL lacks a required privilege; allow it to create tables in the schema: ${reason}`;
  if (/CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL/.test(code))
    return `the TLS certificate of the database is not trusted: ${reason}; set DATABASE_CA_FILE to the certificate of the CA that signed it`;
  if (/does not support SSL/.test(reason))
    return 'the database does not support TLS, which DATABASE_URL or DATABASE_CA_FILE requires; enable TLS in the database, or remove the setting';
  const kind = getDatabaseErrorKind(error);
  if (kind === 'connections')
    return `PostgreSQL accepts no more connections; each toolhost process uses up to DATABASE_POOL connections: ${reason}`;
  return kind === 'unavailable' ? `the database does not respond: ${reason}` : undefined;
}
