import { sealedFields } from '../../domain/config/authentication.ts';
import { configSecrets, mask, type ServerConfig } from '../../domain/config/server-config.ts';
import {
  type OfSecrets,
  originsOfSecrets,
  type SecretUse,
  secretUsesOfServer,
  secretUsesOfTool,
} from '../../domain/config/server-wide.ts';
import type { Tool } from '../../domain/config/tool.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import type { SecretInfo } from '../../store/servers/secrets.ts';

/** Number of tools that are searched in one turn of the event loop. */
const toolsAtOnce = 20;

/** Gives the fields of a configuration that refer to secrets: those for all tools, and those of the given tools. */
export async function forEachSecretUse(
  config: ServerConfig,
  tools: readonly Tool[],
  note: (use: SecretUse, tool?: Tool) => void,
): Promise<void> {
  for (const use of secretUsesOfServer(config)) note(use);
  for (const [index, tool] of tools.entries()) {
    if (index % toolsAtOnce === toolsAtOnce - 1) await nextTurn();
    for (const use of secretUsesOfTool(tool, config)) note(use, tool);
  }
}

/**
 * Secrets that may not be sent wherever the configuration needs them, because they were set before it did. One whose
 * new value is in the configuration is not among them.
 */
export function movedSecrets(secrets: readonly SecretInfo[], config: OfSecrets): SecretInfo[] {
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
  const sealed = sealedFields(config).filter(({ value }) => value !== mask);
  const apart = new Set<string>([...Object.values(configSecrets), ...sealed.map(({ name }) => name)]);
  return secrets.filter((secret) => !apart.has(secret.name) && misses(secret));
}
