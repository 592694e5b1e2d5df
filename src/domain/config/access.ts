import { placeholderNames } from './placeholders.ts';
import type { ServerConfig } from './server-config.ts';

/** Who may call a hosted server and what the upstream then receives; follows from the configuration alone. */
export const accessKinds = ['oauth', 'passthrough', 'api_key', 'caller_token'] as const;
export type Access = (typeof accessKinds)[number];

/** Who made a call, as its record says: by which credential, or `try_out` for whoever tried the tool out as an operation. */
export const callerKinds = ['api_key', 'caller_token', 'oauth', 'try_out'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function accessOf(config: Pick<ServerConfig, 'oauth' | 'authentication' | 'tools'>): Access {
  if (config.oauth) return config.oauth.token_mode === 'passthrough' ? 'passthrough' : 'oauth';
  const stored = config.authentication?.token !== undefined;
  const filled = config.tools.some((tool) =>
    Object.values(tool.headers).some((value) => placeholderNames(value).length > 0),
  );
  return stored || filled ? 'api_key' : 'caller_token';
}

/** Whether nothing that a caller sends reaches the upstream, because it asks for nothing; then any token will do. */
export function isOpen(config: Parameters<typeof accessOf>[0]): boolean {
  return accessOf(config) === 'caller_token' && config.authentication === undefined;
}
