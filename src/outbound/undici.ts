import { createRequire } from 'node:module';
import type * as undici from 'undici';

/**
 * The two parts of undici that are used. Its main module also loads fetch, caches, test doubles and proxies:
 * 80 files and 8 MB.
 */
const require = createRequire(import.meta.url);
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client;
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector;
