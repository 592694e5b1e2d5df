/**
 * Entry point of the service for `apps/cli`. Large parts are imported dynamically, so that each command loads only the
 * parts that it runs.
 */

export type { BackupReport } from './app/backups.ts';
export type { KeyOperator, MasterKeyStatus } from './app/keys/master-keys.ts';
export type { ResealResult } from './app/keys/reseal.ts';
export type { ConfigCheck, Operator } from './app/operator.ts';
export { exampleSlug, exampleToken } from './example-server.ts';
export { apiPath, buildUrl, routes } from './routes.ts';
export { parseServiceUrl } from './setting-addresses.ts';
export { variableDescriptions } from './variables.ts';
export { commit, formatUserAgent, programName, version } from './version.ts';

export const loadService = () => import('./process/serve.ts');
/** Permission for a local service to call the host of a document. */
export const loadDocumentHosts = () => import('./process/allow-document-host.ts');
export const loadDevService = () => import('./process/dev.ts');
/** Operations directly on the database, and the check of a configuration with the rules of an environment. */
export const loadOperator = () => import('./app/operator.ts');
export const loadBackups = () => import('./app/backups.ts');
export const loadMasterKeys = () => import('./app/keys/master-keys.ts');
export const loadResealing = () => import('./app/keys/reseal.ts');
export const loadLogRecovery = () => import('./app/accept-loss.ts');
