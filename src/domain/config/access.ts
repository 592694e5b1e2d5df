import { everyCredential, isStored } from './authentication.ts';
import type { ServerConfig } from './server-config.ts';
import { refersToSecrets } from './server-wide.ts';

/** Who may call a hosted server, and which credential the upstream then receives; follows only from the configuration. */
export const accessKinds = ['oauth', 'passthrough', 'api_key', 'caller_token'] as const;
export type Access = (typeof accessKinds)[number];

/** The kind of credential of a call, for its record; `try_out` for a call by the operation that tries a tool out. */
export const callerKinds = ['api_key', 'caller_token', 'oauth', 'try_out'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function accessOf(config: Omit<ServerConfig, 'name' | 'slug'>): Access {
  if (config.oauth) return config.oauth.token_mode === 'passthrough' ? 'passthrough' : 'oauth';
  return everyCredential(config).some(({ one }) => isStored(one)) || refersToSecrets(config)
    ? 'api_key'
    : 'caller_token';
}

/** Whether the upstream needs no credential, so that no token is forwarded and any is accepted. */
export function isOpen({ authentication }: Pick<ServerConfig, 'authentication'>, access: Access): boolean {
  return access === 'caller_token' && authentication === undefined;
}
