import type { Problem } from '@toolhost/errors/errors';
import { parseOriginTemplate } from './http/origin-template.ts';
import { getOAuthValues, type OAuth } from './oauth.ts';

/** Fields of a configuration that declare values of people. */
export type PersonalSources = {
  login?: { fields?: readonly { name: string }[] | undefined } | undefined;
  oauth?: Pick<OAuth, 'values'> | undefined;
};

/** Returns the names of the values that a person brings, each with the path of its declaration. */
export function listPersonalNames(config: PersonalSources): { name: string; path: string }[] {
  return [
    ...(config.login?.fields ?? []).map(({ name }, index) => ({ name, path: `login.fields[${index}].name` })),
    ...getOAuthValues(config.oauth ?? {}).map(([name]) => ({ name, path: `oauth.values.${name}` })),
  ];
}

/** Returns the problems of names that are also stored secrets, because one of the two would be sent for the other. */
export function findStoredNameProblems(config: PersonalSources, storedNames: ReadonlySet<string>): Problem[] {
  return listPersonalNames(config)
    .filter(({ name }) => storedNames.has(name))
    .map(({ name, path }) => ({
      path,
      message: `${name} is also a secret of the server, but each person provides this value; delete the secret, or choose another name`,
    }));
}

const noNames: ReadonlySet<string> = new Set();

/**
 * Returns the names of the values that a person brings: `login.fields`, and `oauth.values` of the person's login. A
 * stored secret never stands in for such a value.
 */
export function getPersonalNames(config: PersonalSources): ReadonlySet<string> {
  const names = listPersonalNames(config);
  return names.length === 0 ? noNames : new Set(names.map(({ name }) => name));
}

/** Returns the hosts of each value of `oauth.values` that may be a whole origin. */
export function getOriginHosts(config: PersonalSources): ReadonlyMap<string, readonly string[]> {
  return new Map(
    getOAuthValues(config.oauth ?? {}).flatMap(([name, { hosts }]): [string, readonly string[]][] =>
      hosts ? [[name, hosts]] : [],
    ),
  );
}

/**
 * Returns the origins that a URL may lead to if it begins with the value of a person, as the configuration writes them:
 * `https://{{site}}.atlassian.net`, or `https://*.my.salesforce.com` for a declared origin. Undefined for any other URL.
 */
export function findPersonalOrigins(url: string, config: PersonalSources): string[] | undefined {
  const template = parseOriginTemplate(url);
  if (!template) return undefined;
  if (template.suffix !== undefined) return [template.origin];
  return (getOriginHosts(config).get(template.name) ?? []).map((host) => `https://${host.toLowerCase()}`);
}

/** Returns true if a verified email address has exactly one of the domains, without regard to case. */
export function isInDomains(email: string, domains: readonly string[]): boolean {
  const [, domain, ...others] = email.split('@');
  if (domain === undefined || domain === '' || others.length > 0) return false;
  return domains.some((allowed) => foldCase(allowed) === foldCase(domain));
}

/** Lowercases ASCII letters only. By Unicode's rules, other characters would become ASCII letters. */
function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
