import { sealedFields } from './authentication.ts';
import { configSecrets, mask, type ServerConfig } from './server-config.ts';
import { originsOf } from './server-wide.ts';

/** The parts of a copy that are given for it. */
export type OfCopy = {
  slug: string;
  name?: string | undefined;
  base_url?: string | undefined;
  /** By the NAME of a placeholder, or by the path of a field that is sealed. */
  secrets?: { readonly [name: string]: string } | undefined;
};

/** The address below which all tools of a configuration are called; undefined where they go to several hosts. */
export function baseOf(config: ServerConfig): string | undefined {
  if (config.base_url !== undefined) return config.base_url;
  const origins = originsOf(config);
  return origins.length === 1 ? origins[0] : undefined;
}

/**
 * The configuration of a copy. What belongs to its environment stays as it is at the copy: its name, base address, values
 * of variables and login. Everything else is that of the original. A copy follows its original, not a description.
 */
export function copyOf(original: ServerConfig, copy: ServerConfig | undefined, given: OfCopy): ServerConfig {
  const { imported: _, ...rest } = original;
  const config: ServerConfig = { ...rest, slug: given.slug, name: given.name ?? copy?.name ?? original.name };
  if (config.variables) config.variables = variablesOf(config.variables, copy?.variables ?? {});
  if (config.oauth && copy?.oauth) config.oauth = copy.oauth;
  const base = given.base_url ?? (copy && baseOf(copy));
  const moved = base === undefined ? config : movedTo(config, base);
  return withSecrets(moved, given.secrets ?? {});
}

type Variables = NonNullable<ServerConfig['variables']>;

function variablesOf(original: Variables, copy: Variables): Variables {
  return Object.fromEntries(
    Object.entries(original).map(([name, variable]) => {
      const own = Object.hasOwn(copy, name) ? copy[name] : undefined;
      return [name, own ? { ...variable, value: own.value } : variable];
    }),
  );
}

/** The configuration at another base address; where it has none, in the addresses of its tools. */
function movedTo(config: ServerConfig, base: string): ServerConfig {
  if (config.base_url !== undefined) return { ...config, base_url: base };
  if (baseOf(config) === base) return config;
  const start = base.replace(/\/$/, '');
  return {
    ...config,
    tools: config.tools.map((tool) => ({ ...tool, url: tool.url.replace(/^[^:]+:\/\/[^/?#]+/, () => start) })),
  };
}

/** The sealed fields of a configuration, and the names under which their values are stored. */
export function maskedFields(config: ServerConfig): { path: string; name: string; isMasked: boolean }[] {
  const login = config.oauth?.client_secret;
  return [
    ...sealedFields(config).map(({ path, name, value }) => ({ path, name, isMasked: value === mask })),
    ...(login === undefined
      ? []
      : [{ path: configSecrets.clientSecret, name: configSecrets.clientSecret, isMasked: login === mask }]),
  ];
}

/** The configuration with the values of its sealed fields that are given by their paths. */
function withSecrets(config: ServerConfig, secrets: { readonly [name: string]: string }): ServerConfig {
  const given = maskedFields(config).filter(({ path }) => Object.hasOwn(secrets, path));
  if (given.length === 0) return config;
  const { authentication, credentials, oauth } = config;
  const changed = structuredClone({ authentication, credentials, oauth }) as Fields;
  for (const { path } of given) {
    const names = path.split(/[.[\]]+/);
    const last = names.pop() ?? '';
    const field = names.reduce((inner, name) => inner[name] as Fields, changed);
    field[last] = secrets[path];
  }
  return { ...config, ...Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined)) };
}

type Fields = { [name: string]: unknown };
