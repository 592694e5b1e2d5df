import { createHash } from 'node:crypto';
import { getToolAuthentication, placeholderFields, toCredentialList } from './authentication.ts';
import { getPlaceholderNames } from './http/placeholders.ts';
import type { LoginField } from './login.ts';
import { findPersonalOrigins } from './personal-values.ts';
import type { ServerConfig } from './server-config.ts';
import { createUrlResolver, getInterpolatedValues } from './server-wide.ts';

const oauthUrls = ['authorization_url', 'token_url', 'refresh_url'] as const;

/**
 * Returns the hosts that receive the value of each login field: those of the tools and of the provider's endpoints that
 * use it. A host that depends on a person contains `{{NAME}}`.
 */
export function getFieldHosts(config: ServerConfig): Map<string, string[]> {
  const hostsByName = new Map((config.login?.fields ?? []).map(({ name }) => [name, new Set<string>()]));
  const resolveUrl = createUrlResolver(config);
  const add = (url: string, values: readonly unknown[]) => {
    // A URL may begin with the value of a person, as one label or as a whole origin.
    const hosts = (findPersonalOrigins(url, config) ?? [url]).flatMap(
      (origin) => /^[a-z]+:\/\/([^/?#]+)/i.exec(origin)?.[1] ?? [],
    );
    for (const name of values.flatMap(getPlaceholderNames)) for (const host of hosts) hostsByName.get(name)?.add(host);
  };
  if (hostsByName.size === 0) return new Map();
  for (const tool of config.tools) {
    if (tool.disabled) continue;
    const url = resolveUrl(tool.url);
    const credentials = toCredentialList(getToolAuthentication(config, tool));
    const credentialTexts = credentials.flatMap((credential) => placeholderFields.map((field) => credential[field]));
    add(url, [url, config.headers, ...getInterpolatedValues(tool), ...credentialTexts]);
  }
  for (const field of oauthUrls) {
    const url = config.oauth?.[field];
    if (url !== undefined) add(url, [url]);
  }
  return new Map([...hostsByName].map(([name, hosts]) => [name, [...hosts].sort()]));
}

/**
 * Returns the hash of what a person agrees to when they enter values: the fields, and the hosts that receive each value.
 */
export function getValuesAgreement(
  fields: readonly LoginField[],
  hosts: ReadonlyMap<string, readonly string[]>,
): string {
  const agreed = fields.map(({ name }) => [name, ...(hosts.get(name) ?? [])]);
  return createHash('sha256').update(JSON.stringify(agreed)).digest('base64url');
}
