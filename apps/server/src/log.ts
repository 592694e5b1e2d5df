import { createRequire } from 'node:module';
import { type Logger, pino } from 'pino';

export type Log = Logger;

const require = createRequire(import.meta.url);

/** Fields that are redacted at the top level of a logged object and one level below. */
const redactedFields = [
  'authorization',
  'token',
  'key',
  'secret',
  'client_secret',
  'value',
  'password',
  'cookie',
  'code',
  'body',
  'arguments',
];

/**
 * Creates the structured log on standard error: JSON lines, or readable lines on a terminal. Lines are written
 * asynchronously, or with `isSynchronous` before the call that logs them returns.
 */
export function createLog(level: string, { isSynchronous = false } = {}): Log {
  const options = {
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    // An error's own `code`, such as ECONNREFUSED, stays. At the top level, `code` could be an authorization code.
    redact: {
      paths: [...redactedFields, ...redactedFields.filter((field) => field !== 'code').map((field) => `*.${field}`)],
      censor: '[redacted]',
    },
  };
  return process.stderr.isTTY
    ? pino(options, createPrettyStream())
    : pino(options, pino.destination({ dest: 2, sync: isSynchronous }));
}

/** Loads pino-pretty only if standard error is a terminal. */
function createPrettyStream() {
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  return pretty({ destination: 2, sync: true, colorize: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' });
}
