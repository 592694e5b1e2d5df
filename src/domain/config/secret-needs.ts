import { nextTurn } from '../work/next-turn.ts';
import { sealedFields } from './authentication.ts';
import type { ServerConfig } from './server-config.ts';
import { originsOfSecrets, secretUsesOfServer, secretUsesOfTool } from './server-wide.ts';

/**
 * Secrets that the calls of a configuration need, small enough to be stored next to it. `names` are the secrets that
 * placeholders refer to. All secrets are sent to `origins`; those in `apart` are also sent to the listed extra origins.
 */
export type SecretNeeds = {
  names: readonly string[];
  origins: readonly string[];
  apart: { readonly [name: string]: readonly string[] };
};

const mostNames = 50;
const mostOrigins = 50;
/** Number of tools searched before yielding to the event loop. */
const toolsAtOnce = 20;

export async function secretNeedsOf(config: ServerConfig): Promise<SecretNeeds> {
  const names = new Set(secretUsesOfServer(config).flatMap((use) => use.names));
  for (const [index, tool] of config.tools.entries()) {
    if (index % toolsAtOnce === toolsAtOnce - 1) await nextTurn();
    if (!tool.disabled)
      for (const { names: used } of secretUsesOfTool(tool, config)) for (const name of used) names.add(name);
  }
  const originsOf = originsOfSecrets(config);
  const all = originsOf('');
  const known = [...names].slice(0, mostNames);
  const apart = [...known, ...sealedFields(config).map(({ name }) => name)].filter((name) => originsOf(name) !== all);
  return {
    names: known,
    origins: all.slice(0, mostOrigins),
    apart: Object.fromEntries(
      apart.slice(0, mostNames).map((name) => [name, originsOf(name).slice(all.length, all.length + mostOrigins)]),
    ),
  };
}

/** A stored secret and the origins that it may be sent to. */
type Stored = { name: string; origins: readonly string[] };

/** Returns the secrets without a value, and those that may not be sent to every host that needs them. */
export function unmetNeeds(
  { names, origins, apart }: SecretNeeds,
  stored: readonly Stored[],
): { missing: string[]; moved: string[] } {
  const known = new Set(stored.map(({ name }) => name));
  const needed = (name: string) => [...origins, ...((Object.hasOwn(apart, name) && apart[name]) || [])];
  const allowed = new Map(stored.map((secret) => [secret.origins, new Set(secret.origins)]));
  const moved = stored.filter((secret) =>
    needed(secret.name).some((origin) => !allowed.get(secret.origins)?.has(origin)),
  );
  return { missing: names.filter((name) => !known.has(name)), moved: moved.map(({ name }) => name) };
}
