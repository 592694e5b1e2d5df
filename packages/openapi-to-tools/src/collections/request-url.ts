import { expandVariables, normalizePlaceholders, type Variables } from './placeholders.ts';

/** Parts of a request URL. A user and password in it are left out. */
export type RequestUrl = { origin: string; hasUser: boolean; path: string; query: [name: string, value: string][] };

const schemePattern = String.raw`(?:\{\{[^{}]*\}\}|[a-z][a-z0-9+.-]*):\/\/[^/]*`;
const hostPattern = String.raw`\/\/[^/]*|\{\{[^{}]*\}\}[^/]*|localhost(?::\d+)?(?=\/|$)|[\w.-]+:\d+(?=\/|$)|[^/:]+\.[^/]+`;
const urlPattern = new RegExp(`^(${schemePattern}|${hostPattern})?(.*)$`, 'is');

/** Parses the URL of a request. Expands host variables with exactly one value. `declared` has the path parameter names. */
export function readRequestUrl(text: string, variables: Variables, declared: readonly string[]): RequestUrl {
  const url = expandHost(normalizePlaceholders(text.trim()), variables);
  const urlWithoutUser = url.replace(/^((?:(?:\{\{[^{}]*\}\}|[a-z][a-z0-9+.-]*):)?\/\/)?[^/?#]*@/i, '$1');
  const [urlWithoutQuery = '', queryText = ''] = urlWithoutUser.split('#')[0]?.split(/\?(.*)/s) ?? [];
  const match = urlPattern.exec(urlWithoutQuery);
  const rawOrigin = match?.[1] ?? '';
  const query = queryText.split('&').flatMap((pair): [string, string][] => {
    const equals = pair.indexOf('=');
    const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    return name === '' ? [] : [[decode(name), decode(value)]];
  });
  return {
    origin: toOrigin(rawOrigin),
    hasUser: urlWithoutUser !== url,
    path: replaceDeclared(match?.[2] ?? '', declared),
    query,
  };
}

function toOrigin(rawOrigin: string): string {
  if (rawOrigin === '' || /^\{\{|^(?:[a-z][\w+.-]*:)?\/\//i.test(rawOrigin)) return rawOrigin;
  return `${/^(?:localhost|\d+(?:\.\d+){3})(?::|$)/i.test(rawOrigin) ? 'http' : 'https'}://${rawOrigin}`;
}

/** Replaces `:name` inside a segment by a placeholder if the source declares a path parameter with that name. */
function replaceDeclared(path: string, declared: readonly string[]): string {
  const names = new Set(declared);
  return path.replaceAll(/:([A-Za-z_][\w.-]{0,100})/g, (parameter, name: string) =>
    names.has(name) ? `{{${name}}}` : parameter,
  );
}

/** Expands the variables before the path, which form the API address. A variable with only empty values is removed. */
function expandHost(url: string, variables: Variables): string {
  return url.replace(/^(?:[a-z]+:\/\/)?[^/?]*/i, (host) =>
    expandVariables(host, variables).replaceAll(/(?<=[^/])\{\{([^{}]+)\}\}/g, (variable, name: string) =>
      variables.get(name)?.every((value) => value === '') ? '' : variable,
    ),
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // A percent sign that encodes nothing is kept as is.
    return text;
  }
}
