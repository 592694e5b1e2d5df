import type { Config, Secrets, Settings } from '../config.ts';
import type { IdentitySource } from '../manage/identity.ts';
import { routes, urlOf } from '../routes.ts';
import { startExampleUpstream } from './example.ts';
import { createLocalIdentity } from './identity.ts';

/** Services that exist once for all processes: those of local mode, or the configured identity provider. */
export type LocalParts = {
  /** Port of the example upstream. */
  examplePort: number | undefined;
  /** True if this process creates and updates the example server. */
  providesExample: boolean;
  identity: IdentitySource;
  close(): Promise<void>;
};

/** Starts these services on ports next to the main port, so that their URLs stay the same. */
export async function startLocalParts(
  { config, secrets: { oidc } }: Settings,
  baseUrl: string,
  port: number,
): Promise<LocalParts> {
  const hasExample = config.mode === 'local' && config.demo;
  const example = hasExample ? await startExampleUpstream(config.dataDir, port + 1) : undefined;
  const own = oidc ? undefined : createLocalIdentity(port + 2, redirectUris(config, baseUrl));
  return {
    examplePort: example?.port,
    providesExample: hasExample,
    identity: { find: own ? own.find : identityOf(oidc), host: identityHost(oidc) },
    async close() {
      await example?.close();
      await own?.close();
    },
  };
}

function redirectUris(config: Config, baseUrl: string): string[] {
  return [baseUrl + routes.loginCallback, urlOf(baseUrl, routes.callback, config.managementSlug)];
}

function identityOf(oidc: Secrets['oidc']): IdentitySource['find'] {
  return async () => {
    if (!oidc) throw new Error('no identity provider is configured');
    return oidc;
  };
}

/** Returns the host where people sign in, for display. */
export function identityHost(oidc: Secrets['oidc']): string {
  return oidc ? new URL(oidc.issuer).host : 'this machine';
}
