import { createRequire } from 'node:module';
import { type Logger, pino } from 'pino';

export type Log = Logger;

/** Fields that must never be printed, wherever in a logged object they stand. */
const unspeakable = [
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

/** Structured log on standard error: JSON lines, or readable ones at a terminal. */
export function createLog(level: string): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // An error's own `code` says what happened, such as ECONNREFUSED; any other one could be an authorization code.
    redact: {
      paths: [...unspeakable, ...unspeakable.filter((field) => field !== 'code').map((field) => `*.${field}`)],
      censor: '[redacted]',
    },
  };
  return process.stderr.isTTY ? pino(options, readableLines()) : pino(options, pino.destination(2));
}

/** Loaded only where a person reads along. */
function readableLines() {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  return pretty({ destination: 2, sync: true, colorize: true, translateTime: 'HH:MM:ss', ignore: 'pid,hostname' });
}
