import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { App } from '../app/app.ts';
import { createDevServers, type DevServers } from '../local/dev-servers.ts';
import { createSignInLink } from '../local/sign-in-link.ts';
import { createLog } from '../log.ts';
import { exitDespiteThreads, stopOnSignals } from './signals.ts';
import { start } from './start.ts';

/** Development service: local mode, with a temporary database that is deleted at the end. */
export type DevService = {
  baseUrl: string;
  /** URL of the dashboard; a sign-in link if only such a link signs in. */
  dashboardUrl: string;
  servers: DevServers;
  threads: App['threads'];
  stop(): Promise<boolean>;
};

/** Environment variables that a development service uses. */
const inheritedVariables = ['PORT', 'HOST', 'LOCAL_MODE', 'EGRESS_ALLOW', 'LOG_LEVEL', 'MANAGEMENT_SLUG'] as const;

/** @throws ConfigError, AppError conflict */
export async function startDevService(env: NodeJS.ProcessEnv): Promise<DevService> {
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-dev-'));
  const inherited = Object.fromEntries(
    inheritedVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  const settings = { LOG_LEVEL: 'warn', ...inherited, DATA_DIR: dataDir, DEMO: '0', QUOTAS: 'writes=0' };
  const removeData = () => rmSync(dataDir, { recursive: true, force: true });
  try {
    const started = await start(settings);
    const { app, baseUrl, config } = started;
    const store = { db: app.runner.db, now: app.runner.deps.now };
    return {
      baseUrl,
      dashboardUrl: config.isInContainer ? await createSignInLink(store, baseUrl) : baseUrl,
      servers: createDevServers(app.runner),
      threads: app.threads,
      async stop() {
        const isComplete = await started.stop();
        removeData();
        return isComplete;
      },
    };
  } catch (error) {
    removeData();
    throw error;
  }
}

/** Ends the process with exit code 0 on a signal, after `close` and the service's running calls. */
export function stopDevOnSignals(service: DevService, close: () => Promise<void>): void {
  exitDespiteThreads('warn', service);
  stopOnSignals(createLog('warn'), async () => {
    await close();
    return service.stop();
  });
}
