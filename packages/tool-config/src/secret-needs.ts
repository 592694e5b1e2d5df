import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { sealedFields } from './authentication.ts';
import type { ServerConfig } from './server-config.ts';
import { createSecretOriginResolver, getServerSecretUses, getToolSecretUses } from './server-wide.ts';

/**
 * Secrets that the calls of a configuration need, small enough to be stored with it. `names` are the secrets in
 * placeholders. All secrets are sent to `origins`, and those in `apart` also to the origins listed there.
 */
export type SecretNeeds = {
  names: readonly string[];
  origins: readonly string[];
  apart: { readonly [name: string]: readonly string[] };
};

const maxNames = 50;
const maxOrigins = 50;
/** Number of tools searched before yielding to the event loop. */
const toolsPerChunk = 20;

export async function getSecretNeeds(config: ServerConfig): Promise<SecretNeeds> {
  const names = new Set(getServerSecretUses(config).flatMap((use) => use.names));
  for (const [index, tool] of config.tools.entries()) {
    if (index % toolsPerChunk === toolsPerChunk - 1) await yieldToEventLoop();
    if (!tool.disabled)
      for (const { names: usedNames } of getToolSecretUses(tool, config)) for (const name of usedNames) names.add(name);
  }
  const getOrigins = createSecretOriginResolver(config);
  const commonOrigins = getOrigins('');
  const limitedNames = [...names].slice(0, maxNames);
  const namesWithExtraOrigins = [...limitedNames, ...sealedFields(config).map(({ name }) => name)].filter(
    (name) => getOrigins(name) !== commonOrigins,
  );
  return {
    names: limitedNames,
    origins: commonOrigins.slice(0, maxOrigins),
    apart: Object.fromEntries(
      namesWithExtraOrigins
        .slice(0, maxNames)
        .map((name) => [name, getOrigins(name).slice(commonOrigins.length, commonOrigins.length + maxOrigins)]),
    ),
  };
}

/** A stored secret and the origins that it may be sent to. */
type StoredSecret = { name: string; origins: readonly string[] };

/** Returns the secrets without a value, and those that may not be sent to every host that needs them. */
export function findUnmetNeeds(
  { names, origins, apart }: SecretNeeds,
  stored: readonly StoredSecret[],
): { missing: string[]; moved: string[] } {
  const storedNames = new Set(stored.map(({ name }) => name));
  const getNeededOrigins = (name: string) => [...origins, ...((Object.hasOwn(apart, name) && apart[name]) || [])];
  const allowed = new Map(stored.map((secret) => [secret.origins, new Set(secret.origins)]));
  const moved = stored.filter((secret) =>
    getNeededOrigins(secret.name).some((origin) => !allowed.get(secret.origins)?.has(origin)),
  );
  return { missing: names.filter((name) => !storedNames.has(name)), moved: moved.map(({ name }) => name) };
}
