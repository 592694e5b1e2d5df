import { listCredentials, placeholderFields } from './authentication.ts';
import { parseOriginTemplate } from './http/origin-template.ts';
import { getPlaceholderNames } from './http/placeholders.ts';
import { findSharedSuffix } from './personal-host-rules.ts';
import { listPersonalNames } from './personal-values.ts';
import type { ServerConfig } from './server-config.ts';
import { createUrlResolver, getInterpolatedValues } from './server-wide.ts';
import type { Warning } from './warning.ts';

/** Returns warnings about `login`, and about values of people, that are valid but probably do not work as intended. */
export function findPeopleWarnings(config: ServerConfig): Warning[] {
  const { login, oauth } = config;
  const warnings = [...findUnusedNames(config), ...findSharedHosts(config)];
  if (login && oauth && Object.keys(login).length === 0) {
    const message = 'changes nothing next to oauth; set allow, clients, views, or fields, or leave it out';
    warnings.push({ path: 'login', message });
  }
  const { suffix } = parseOriginTemplate(oauth?.token_url ?? '') ?? {};
  if (suffix !== undefined && oauth?.client_secret !== undefined) {
    const message = `sends the client secret to the host below ${suffix} that the person enters; make sure that all these hosts belong to the provider`;
    warnings.push({ path: 'oauth.token_url', message });
  }
  return warnings;
}

function findUnusedNames(config: ServerConfig): Warning[] {
  const declared = listPersonalNames(config);
  if (declared.length === 0) return [];
  const { base_url, headers, oauth, tools } = config;
  const usedNames = new Set(
    [
      [base_url, headers, oauth?.authorization_url, oauth?.token_url, oauth?.refresh_url],
      listCredentials(config).map(({ credential }) => placeholderFields.map((field) => credential[field])),
      ...tools.map(getInterpolatedValues),
    ].flatMap(getPlaceholderNames),
  );
  return declared
    .filter(({ name }) => !usedNames.has(name))
    .map(({ name, path }) => ({ path, message: `no {{${name}}} refers to it` }));
}

/** Returns one warning for each host that people complete below a suffix with several owners. */
function findSharedHosts(config: ServerConfig): Warning[] {
  const { base_url: base, oauth, tools } = config;
  const resolveUrl = createUrlResolver(config);
  const urls: [path: string, url: string | undefined][] = [
    ['base_url', base],
    ['oauth.authorization_url', oauth?.authorization_url],
    ['oauth.token_url', oauth?.token_url],
    ...tools.map(({ url }, index): [string, string] => [`tools[${index}].url`, url]),
  ];
  const messages = new Map<string, Warning>();
  for (const [path, url = ''] of urls) {
    const message = findSharedSuffix(resolveUrl(url));
    if (message !== undefined && !messages.has(message)) messages.set(message, { path, message });
  }
  return [...messages.values()];
}
