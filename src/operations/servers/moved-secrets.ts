import { configSecrets } from '../../domain/config/server-config.ts';
import type { SecretInfo } from '../../store/servers/secrets.ts';

/** Secrets that may not be sent to all of these origins, because they were set before the tools called them. */
export function movedSecrets(secrets: readonly SecretInfo[], origins: readonly string[]): SecretInfo[] {
  // Most secrets share one list of origins, which is compared only once.
  const isMissing = new Map<readonly string[], boolean>();
  const misses = (allowed: readonly string[]) => {
    const isOneMissing = isMissing.get(allowed) ?? hasOther(origins, new Set(allowed));
    isMissing.set(allowed, isOneMissing);
    return isOneMissing;
  };
  return secrets.filter(({ name, origins: allowed }) => name !== configSecrets.clientSecret && misses(allowed));
}

function hasOther(origins: readonly string[], known: ReadonlySet<string>): boolean {
  return origins.some((origin) => !known.has(origin));
}
