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

/** The first few names, with the number of the others. */
export function firstNames(names: readonly string[]): string {
  return `${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`;
}
