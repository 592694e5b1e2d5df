import { expandVariables, normalizePlaceholders, type Variables } from './placeholders.ts';

/** Parts of a request URL. A user and password in it are left out. */
export type RequestUrl = { origin: string; hasUser: boolean; path: string; query: [name: string, value: string][] };

const scheme = String.raw`(?:\{\{[^{}]*\}\}|[a-z][a-z0-9+.-]*):\/\/[^/]*`;
const noScheme = String.raw`\/\/[^/]*|\{\{[^{}]*\}\}[^/]*|localhost(?::\d+)?(?=\/|$)|[\w.-]+:\d+(?=\/|$)|[^/:]+\.[^/]+`;
const parts = new RegExp(`^(${scheme}|${noScheme})?(.*)$`, 'is');

/** Parses the URL of a request. Host variables with exactly one value are expanded. */
export function readRequestUrl(text: string, variables: Variables, declared: readonly string[]): RequestUrl {
  const url = withHost(normalizePlaceholders(text.trim()), variables);
  const plain = url.replace(/^((?:(?:\{\{[^{}]*\}\}|[a-z][a-z0-9+.-]*):)?\/\/)?[^/?#]*@/i, '$1');
  const [before = '', after = ''] = plain.split('#')[0]?.split(/\?(.*)/s) ?? [];
  const match = parts.exec(before);
  const found = match?.[1] ?? '';
  const query = after.split('&').flatMap((pair): [string, string][] => {
    const equals = pair.indexOf('=');
    const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    return name === '' ? [] : [[decoded(name), decoded(value)]];
  });
  return { origin: originOf(found), hasUser: plain !== url, path: withDeclared(match?.[2] ?? '', declared), query };
}

function originOf(found: string): string {
  if (found === '' || /^\{\{|^(?:[a-z][\w+.-]*:)?\/\//i.test(found)) return found;
  return `${/^(?:localhost|\d+(?:\.\d+){3})(?::|$)/i.test(found) ? 'http' : 'https'}://${found}`;
}

/** Replaces `:name` inside a segment by a placeholder if the source declares a path parameter with that name. */
function withDeclared(path: string, declared: readonly string[]): string {
  const names = new Set(declared);
  return path.replaceAll(/:([A-Za-z_][\w.-]{0,100})/g, (found, name: string) =>
    names.has(name) ? `{{${name}}}` : found,
  );
}

/** Expands the variables before the path, which form the API address. A variable with only empty values is removed. */
function withHost(url: string, variables: Variables): string {
  return url.replace(/^(?:[a-z]+:\/\/)?[^/?]*/i, (host) =>
    expandVariables(host, variables).replaceAll(/(?<=[^/])\{\{([^{}]+)\}\}/g, (found, name: string) =>
      variables.get(name)?.every((value) => value === '') ? '' : found,
    ),
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // A percent sign that encodes nothing is kept as is.
    return text;
  }
}
