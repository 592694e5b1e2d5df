import { sealedFields } from './authentication.ts';
import { configSecrets, mask, type ServerConfig } from './server-config.ts';
import { originsOf } from './server-wide.ts';

/** Fields that a copy sets itself. */
export type OfCopy = {
  slug: string;
  name?: string | undefined;
  base_url?: string | undefined;
  /** Values by placeholder NAME, or by the path of a sealed field. */
  secrets?: { readonly [name: string]: string } | undefined;
};

/** Returns the base URL of all tool calls of a configuration; undefined if they go to several hosts. */
export function baseOf(config: ServerConfig): string | undefined {
  if (config.base_url !== undefined) return config.base_url;
  const origins = originsOf(config);
  return origins.length === 1 ? origins[0] : undefined;
}

/**
 * Returns the configuration of a copy. A copy keeps the values of its own environment: name, base URL, variable values,
 * and login. Everything else comes from the original. A copy follows its original and is never imported from an API
 * description.
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

/** Moves the configuration to another base URL. Without a `base_url`, the tool URLs are changed. */
function movedTo(config: ServerConfig, base: string): ServerConfig {
  if (config.base_url !== undefined) return { ...config, base_url: base };
  if (baseOf(config) === base) return config;
  const start = base.replace(/\/$/, '');
  return {
    ...config,
    tools: config.tools.map((tool) => ({ ...tool, url: tool.url.replace(/^[^:]+:\/\/[^/?#]+/, () => start) })),
  };
}

/** Returns the sealed fields of a configuration, and the names under which their values are stored. */
export function maskedFields(config: ServerConfig): { path: string; name: string; isMasked: boolean }[] {
  const login = config.oauth?.client_secret;
  return [
    ...sealedFields(config).map(({ path, name, value }) => ({ path, name, isMasked: value === mask })),
    ...(login === undefined
      ? []
      : [{ path: configSecrets.clientSecret, name: configSecrets.clientSecret, isMasked: login === mask }]),
  ];
}

/** Returns the configuration with new values for the sealed fields whose paths are in `secrets`. */
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
