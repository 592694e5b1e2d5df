import { configSecrets, type ServerConfig } from '../../domain/config/server-config.ts';
import { originsOfSecrets } from '../../domain/config/server-wide.ts';
import type { SecretInfo } from '../../store/servers/secrets.ts';

/** Secrets that may not be sent wherever the configuration needs them, because they were set before it did. */
export function movedSecrets(secrets: readonly SecretInfo[], config: ServerConfig): SecretInfo[] {
  const neededBy = originsOfSecrets(config);
  // Most secrets share one list of origins, which is compared only once.
  const isMissing = new Map<readonly string[], boolean>();
  const misses = ({ name, origins: allowed }: SecretInfo) => {
    const needed = neededBy(name);
    const isShared = needed === neededBy('');
    const known = isShared ? isMissing.get(allowed) : undefined;
    if (known !== undefined) return known;
    const set = new Set(allowed);
    const missing = needed.some((origin) => !set.has(origin));
    if (isShared) isMissing.set(allowed, missing);
    return missing;
  };
  return secrets.filter((secret) => secret.name !== configSecrets.clientSecret && misses(secret));
}
