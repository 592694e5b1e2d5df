import { AppError } from '../errors.ts';

/** Errors of a connection, and SQLSTATE classes 08 (connection), 53 (resources), 57 (shutdown) and 55P03 / 57014 (waits). */
const unavailable = /^(ECONN\w+|EPIPE|ENOTFOUND|ETIMEDOUT|08\w{3}|53\w{3}|57\w{3}|55P03|25P03|ERR_SQLITE_ERROR)$/;
const poolMessages =
  /Connection terminated|is not queryable|timeout exceeded when trying to connect|Query read timeout|database is not open|driver has already been destroyed/;

/** Whatever was thrown, but as 503 when the database could not be asked: a client should then wait, not log in again. */
export function unavailableIfDatabase(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof AppError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const nested = error instanceof AggregateError ? error.errors.map((e: NodeJS.ErrnoException) => e.code ?? '') : [];
  if (![code, ...nested].some((c) => unavailable.test(c)) && !poolMessages.test(error.message)) return error;
  return new AppError('unavailable', 'the database does not answer; try again in a moment', { retryAfterS: 2 });
}
