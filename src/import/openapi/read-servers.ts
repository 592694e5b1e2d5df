import { asText, asTexts, entriesOf, field, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiServer, ServerVariable } from '../model.ts';

/** A longer address is none that a tool could have. */
const mostUrl = 1000;

/** The `servers` of OpenAPI 3; undefined when there are none. */
export function readServers(value: unknown): ApiServer[] | undefined {
  const servers = listOf(value).flatMap((server): ApiServer[] => {
    const url = asText(field(server, 'url')).trim();
    if (url === '' || url.length > mostUrl) return [];
    const described = new Map(entriesOf(field(server, 'variables')));
    const variables = variableNames(url).map((name) => readVariable(name, described.get(name)));
    return [{ url, description: asText(field(server, 'description')), variables }];
  });
  return servers.length > 0 ? servers : undefined;
}

function variableNames(url: string): string[] {
  return [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
}

function readVariable(name: string, value: unknown): ServerVariable {
  const fallback = asText(field(value, 'default'));
  return {
    name,
    fallback: fallback === '' || fallback.length > mostUrl ? undefined : fallback,
    options: asTexts(field(value, 'enum')).filter((option) => option.length <= mostUrl),
    description: asText(field(value, 'description')),
  };
}

/** `host`, `basePath` and `schemes` of Swagger 2; the secure scheme where there is a choice. */
export function readSwaggerServers(root: JsonFields): ApiServer[] {
  const host = asText(root.host)
    .replace(/^[a-z]+:\/\//i, '')
    .replace(/(?<!\/)\/+$/, '');
  const base = asText(root.basePath).replace(/(?<!\/)\/+$/, '');
  const schemes = asTexts(root.schemes);
  const scheme = schemes.includes('http') && !schemes.includes('https') ? 'http' : 'https';
  const url = host === '' ? base || '/' : `${scheme}://${host}${base}`;
  return [{ url, description: '', variables: variableNames(url).map((name) => readVariable(name, undefined)) }];
}
