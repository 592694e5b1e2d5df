import type { Secrets, Settings } from '../config.ts';
import type { IdentitySource } from '../manage/identity.ts';
import { buildUrl, routes } from '../routes.ts';
import { startExampleUpstream } from './example.ts';
import { createLocalIdentity } from './identity.ts';

/**
 * Services that exist once for all processes: the example upstream and the identity provider of local mode. With a
 * configured identity provider, only its settings are shared.
 */
export type SharedServices = {
  /** Port of the example upstream. */
  examplePort: number | undefined;
  /** True if this process creates and updates the example server. */
  maintainsExample: boolean;
  identity: IdentitySource;
  close(): Promise<void>;
};

/** Starts the services of local mode. The example upstream has the port next to the main port, so that its URL stays. */
export async function startSharedServices(
  { config, secrets: { oidc } }: Settings,
  baseUrl: string,
  port: number,
): Promise<SharedServices> {
  const hasExample = config.mode === 'local' && config.demo;
  const example = hasExample ? await startExampleUpstream(config.dataDir, port + 1) : undefined;
  const localProvider = oidc
    ? undefined
    : createLocalIdentity(baseUrl, buildUrl(baseUrl, routes.callback, config.managementSlug));
  return {
    examplePort: example?.port,
    maintainsExample: hasExample,
    identity: {
      find: localProvider ? localProvider.getOptions : createConfiguredIdentity(oidc),
      host: getIdentityHost(oidc),
      isBuiltIn: oidc === undefined,
    },
    async close() {
      await example?.close();
      await localProvider?.close();
    },
  };
}

function createConfiguredIdentity(oidc: Secrets['oidc']): IdentitySource['find'] {
  return async () => {
    if (!oidc) throw new Error('no identity provider is configured');
    return oidc;
  };
}

/** Returns the host where people sign in, for display. */
export function getIdentityHost(oidc: Secrets['oidc']): string {
  return oidc ? new URL(oidc.issuer).host : 'this machine';
}
