import { loadSequentially } from '@toolhost/errors/yield-to-event-loop';

/** Modules of the operation catalog. Evaluated together, their declarations would block the event loop for 40 ms. */
const moduleLoaders: readonly (() => Promise<unknown>)[] = [
  () => import('./api-keys.ts'),
  () => import('./applying/apply-server.ts'),
  () => import('./calls/captures.ts'),
  () => import('./calls/statistics.ts'),
  () => import('./calls/try-tool.ts'),
  () => import('./calls/usage-operations.ts'),
  () => import('./connection/connection-check.ts'),
  () => import('./logins.ts'),
  () => import('./imports/reimport-api.ts'),
  () => import('./imports/watch-operations.ts'),
  () => import('./notifications/notifications.ts'),
  () => import('./people/workspaces.ts'),
  () => import('./playground/ask-model.ts'),
  () => import('./servers/servers.ts'),
  () => import('./servers/tools.ts'),
  () => import('./index.ts'),
];

/** Loads the operations in small steps. */
export function loadOperations(): Promise<void> {
  return loadSequentially(moduleLoaders);
}
