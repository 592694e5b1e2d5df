import type { FullConfig } from '../app/foundation.ts';
import type { Config } from '../config.ts';
import { routes, urlOf } from '../routes.ts';
import { startExampleUpstream } from './example.ts';
import { createLocalIdentity } from './identity.ts';

/** What there is one of, however many processes serve: what local mode brings, or the environment's identity provider. */
export type LocalParts = {
  /** Where the worked example's upstream listens. */
  examplePort: number | undefined;
  /** Whether this process stores the example's server. */
  providesExample: boolean;
  identity: FullConfig['identity'];
  close(): Promise<void>;
};

/** Starts them beside the service's own port, so that their addresses stay the same. */
export async function startLocalParts(config: Config, baseUrl: string, port: number): Promise<LocalParts> {
  const hasExample = config.mode === 'local' && config.demo;
  const example = hasExample ? await startExampleUpstream(config.dataDir, port + 1) : undefined;
  const own = config.oidc ? undefined : createLocalIdentity(port + 2, redirectUris(config, baseUrl));
  return {
    examplePort: example?.port,
    providesExample: hasExample,
    identity: { find: own ? own.find : identityOf(config), host: identityHost(config) },
    async close() {
      await example?.close();
      await own?.close();
    },
  };
}

function redirectUris(config: Config, baseUrl: string): string[] {
  return [baseUrl + routes.loginCallback, urlOf(baseUrl, routes.callback, config.managementSlug)];
}

function identityOf({ oidc }: Config): FullConfig['identity']['find'] {
  return async () => {
    if (!oidc) throw new Error('local mode has an identity provider of its own');
    return oidc;
  };
}

/** What people are told about where they sign in. */
export function identityHost({ oidc }: Config): string {
  return oidc ? new URL(oidc.issuer).host : 'this machine';
}
