import { parseOriginTemplate } from './http/origin-template.ts';
import { getPlaceholderNames, interpolatePlaceholders } from './http/placeholders.ts';

/** Fields of a configuration that decide where values go. In a configuration that is being edited, any may be invalid. */
export type HostSources = {
  readonly [Name in 'authentication' | 'base_url' | 'credentials' | 'headers' | 'login' | 'oauth']?: unknown;
} & { readonly tools?: unknown; readonly variables?: unknown };

const oauthUrls = ['authorization_url', 'token_url', 'refresh_url'] as const;

function getField(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, name)) return undefined;
    return (inner as Record<string, unknown>)[name];
  }, value);
}

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/**
 * Returns the hosts that receive the value of each login field: those of the tools and of the provider's endpoints that
 * use it. A host that depends on a person contains `{{NAME}}`. The dashboard uses it, so it imports no schemas.
 */
export function getFieldHosts(config: HostSources): Map<string, string[]> {
  const fields = toList(getField(config.login, 'fields'));
  const hostsByName = new Map(fields.map((field) => [toText(getField(field, 'name')), new Set<string>()]));
  if (hostsByName.size === 0) return new Map();
  const add = (url: string, values: unknown) => {
    const names = getPlaceholderNames(values);
    for (const host of findHosts(url, config)) for (const name of names) hostsByName.get(name)?.add(host);
  };
  const render = (text: string) =>
    interpolatePlaceholders(text, (name) => {
      const value = getField(config.variables, name, 'value');
      return typeof value === 'string' ? value : `{{${name}}}`;
    });
  const base = render(toText(config.base_url)).replace(/\/$/, '');
  for (const tool of toList(config.tools)) {
    if (getField(tool, 'disabled') === true) continue;
    const path = render(toText(getField(tool, 'url')));
    const url = path.startsWith('/') ? base + path : path;
    add(url, [url, config.headers, getCredential(config, tool), ...getSentValues(tool)]);
  }
  for (const name of oauthUrls) {
    const url = toText(getField(config.oauth, name));
    add(url, url);
  }
  return new Map([...hostsByName].map(([name, hosts]) => [name, [...hosts].sort()]));
}

/** Returns the hosts that a URL may lead to. It may begin with the value of a person, as one label or as a whole origin. */
function findHosts(url: string, { oauth }: HostSources): string[] {
  const template = parseOriginTemplate(url);
  if (template?.suffix !== undefined) return [template.host];
  if (template)
    return toList(getField(oauth, 'values', template.name, 'hosts')).map((host) => toText(host).toLowerCase());
  return /^[a-z]+:\/\/([^/?#]+)/i.exec(url)?.slice(1) ?? [];
}

function getCredential({ authentication, credentials }: HostSources, tool: unknown): unknown {
  const name = getField(tool, 'credential');
  return name === undefined ? authentication : getField(credentials, toText(name));
}

/** Returns the values of a tool that are sent to its host, without the texts that only describe it. */
function getSentValues(tool: unknown): unknown[] {
  const schema = getField(tool, 'input_schema');
  // An input schema lists the arguments itself, or is a JSON Schema with properties.
  const declared = [schema, getField(schema, 'properties')].flatMap((group) => Object.values(Object(group)));
  const constants = declared.map((definition) => getField(definition, 'value'));
  return [getField(tool, 'headers'), getField(tool, 'body_template'), ...constants];
}
