import { sealedFields } from './authentication.ts';
import type { LoginRules } from './login.ts';
import { configSecrets, mask, type ServerConfig } from './server-config.ts';
import { getOrigins } from './server-wide.ts';

/** Fields that a copy sets itself. */
export type CopyOptions = {
  slug: string;
  name?: string | undefined;
  base_url?: string | undefined;
  /** Values by placeholder NAME, or by the path of a sealed field. */
  secrets?: { readonly [name: string]: string } | undefined;
};

/** Returns the base URL of all tool calls of a configuration; undefined if they go to several hosts. */
export function getBaseUrl(config: ServerConfig): string | undefined {
  if (config.base_url !== undefined) return config.base_url;
  const [origin, ...others] = getOrigins(config);
  // A declared origin has several hosts.
  return others.length === 0 && !origin?.includes('*') ? origin : undefined;
}

/**
 * Returns the configuration of a copy. A copy keeps the values of its own environment: name, base URL, variable values,
 * login, and publication. Everything else comes from the original, except for its link to an API description, because a
 * copy is never imported.
 */
export function createCopyConfig(
  original: ServerConfig,
  copy: ServerConfig | undefined,
  options: CopyOptions,
): ServerConfig {
  const { imported: _, public: _isPublic, ...originalFields } = original;
  const config: ServerConfig = {
    ...originalFields,
    slug: options.slug,
    name: options.name ?? copy?.name ?? original.name,
    ...(copy?.public !== undefined && { public: copy.public }),
  };
  if (config.variables) config.variables = mergeVariables(config.variables, copy?.variables ?? {});
  if (config.oauth && copy?.oauth) config.oauth = copy.oauth;
  if (config.login && copy?.login) config.login = keepPeople(config.login, copy.login);
  const baseUrl = options.base_url ?? (copy && getBaseUrl(copy));
  const movedConfig = baseUrl === undefined ? config : moveToBase(config, baseUrl);
  return withSecrets(movedConfig, options.secrets ?? {});
}

/** Returns the login of the original with the people and the clients of the copy. */
function keepPeople(original: LoginRules, { allow, clients }: LoginRules): LoginRules {
  const { allow: _, clients: __, ...fields } = original;
  return { ...(allow && { allow }), ...(clients && { clients }), ...fields };
}

type Variables = NonNullable<ServerConfig['variables']>;

function mergeVariables(original: Variables, copy: Variables): Variables {
  return Object.fromEntries(
    Object.entries(original).map(([name, variable]) => {
      const copied = Object.hasOwn(copy, name) ? copy[name] : undefined;
      return [name, copied ? { ...variable, value: copied.value } : variable];
    }),
  );
}

/** Moves the configuration to another base URL. Without a `base_url`, the tool URLs are changed. */
function moveToBase(config: ServerConfig, base: string): ServerConfig {
  if (config.base_url !== undefined) return { ...config, base_url: base };
  if (getBaseUrl(config) === base) return config;
  const newOrigin = base.replace(/\/$/, '');
  return {
    ...config,
    tools: config.tools.map((tool) => ({ ...tool, url: tool.url.replace(/^[^:]+:\/\/[^/?#]+/, () => newOrigin) })),
  };
}

/** Returns the sealed fields of a configuration, and the names under which their values are stored. */
export function listSealedFields(config: ServerConfig): { path: string; name: string; isMasked: boolean }[] {
  const loginSecret = config.oauth?.client_secret;
  return [
    ...sealedFields(config).map(({ path, name, value }) => ({ path, name, isMasked: value === mask })),
    ...(loginSecret === undefined
      ? []
      : [{ path: configSecrets.clientSecret, name: configSecrets.clientSecret, isMasked: loginSecret === mask }]),
  ];
}

/** Returns the configuration with new values for the sealed fields whose paths are in `secrets`. */
function withSecrets(config: ServerConfig, secrets: { readonly [name: string]: string }): ServerConfig {
  const replacedFields = listSealedFields(config).filter(({ path }) => Object.hasOwn(secrets, path));
  if (replacedFields.length === 0) return config;
  const { authentication, credentials, oauth } = config;
  const updated = structuredClone({ authentication, credentials, oauth }) as Fields;
  for (const { path } of replacedFields) {
    const names = path.split(/[.[\]]+/);
    const fieldName = names.pop() ?? '';
    const field = names.reduce((inner, name) => inner[name] as Fields, updated);
    field[fieldName] = secrets[path];
  }
  return { ...config, ...Object.fromEntries(Object.entries(updated).filter(([, value]) => value !== undefined)) };
}

type Fields = { [name: string]: unknown };
