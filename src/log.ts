import { createRequire } from 'node:module';
import { type Logger, pino } from 'pino';

export type Log = Logger;

const require = createRequire(import.meta.url);

/** Fields that are redacted at the top of a logged object and one level below. */
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
 * Structured log on standard error: JSON lines, or readable ones at a terminal. A line is written meanwhile, or with
 * `isImmediate` before its function returns.
 */
export function createLog(level: string, { isImmediate = false } = {}): Log {
  const options = {
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    // The `code` of an error, such as ECONNREFUSED, is kept. At the top level it could be an authorization code.
    redact: {
      paths: [...redactedFields, ...redactedFields.filter((field) => field !== 'code').map((field) => `*.${field}`)],
      censor: '[redacted]',
    },
  };
  return process.stderr.isTTY
    ? pino(options, readableLines())
    : pino(options, pino.destination({ dest: 2, sync: isImmediate }));
}

/** Loaded only when standard error is a terminal. */
function readableLines() {
  const pretty = require('pino-pretty') as typeof import('pino-pretty');
  return pretty({ destination: 2, sync: true, colorize: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' });
}
