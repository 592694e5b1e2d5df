/** Replaces the origins of servers and token endpoints in a document by the stub. Server paths remain. */
import { isObject, type Json, type JsonObject, toList, toObject, toText } from './json.ts';

export function localize(document: JsonObject, stubUrl: string): JsonObject {
  const moved: JsonObject = { ...document, ...moveTokenEndpoints(document, stubUrl) };
  if (document.swagger !== undefined) return { ...moved, host: new URL(stubUrl).host, schemes: ['http'] };
  if (Array.isArray(document.servers)) moved.servers = moveServers(document.servers, stubUrl);
  const paths = Object.entries(toObject(document.paths)).map(
    ([path, item]) => [path, moveItem(item, stubUrl)] as const,
  );
  moved.paths = Object.fromEntries(paths);
  return moved;
}

export const tokenPath = '/audit-token';

function moveTokenEndpoints(document: JsonObject, stubUrl: string): JsonObject {
  const move = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(move);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, name === 'tokenUrl' ? stubUrl + tokenPath : move(one)]),
    );
  };
  const components = toObject(document.components);
  return {
    ...(isObject(components.securitySchemes) && {
      components: { ...components, securitySchemes: move(components.securitySchemes) },
    }),
    ...(isObject(document.securityDefinitions) && { securityDefinitions: move(document.securityDefinitions) }),
  };
}

function moveItem(item: Json, stubUrl: string): Json {
  if (!isObject(item)) return item;
  const entries = Object.entries(item).map(([name, value]): [string, Json] => {
    if (name === 'servers') return [name, moveServers(toList(value), stubUrl)];
    return [
      name,
      isObject(value) && Array.isArray(value.servers)
        ? { ...value, servers: moveServers(value.servers, stubUrl) }
        : value,
    ];
  });
  return Object.fromEntries(entries);
}

function moveServers(servers: readonly Json[], stubUrl: string): Json[] {
  return servers.map((one) => {
    const server = toObject(one);
    const url = toText(server.url)
      .trim()
      .replace(/^([^/?#]*:)?\/\/[^/?#]*/, stubUrl);
    const usedVariables = Object.entries(toObject(server.variables)).filter(([name]) => url.includes(`{${name}}`));
    const { variables, ...rest } = server;
    return { ...rest, url, ...(usedVariables.length > 0 && { variables: Object.fromEntries(usedVariables) }) };
  });
}

/** Returns the server paths at which an operation may be called. A server variable may be a secret. */
export function getBasePaths(document: JsonObject, path: string, operation: JsonObject, secret: string): string[] {
  if (document.swagger !== undefined) return [toText(document.basePath)];
  const item = toObject(toObject(document.paths)[path]);
  const servers = [operation.servers, item.servers, document.servers].map(toList).find((some) => some.length > 0) ?? [
    { url: '/' },
  ];
  return servers.flatMap((one) => {
    const { url, variables } = toObject(one);
    const interpolate = (getValue: (name: string) => string) => {
      const interpolated = (toText(url) || '/').replaceAll(/\{([^{}]+)\}/g, (_, name: string) => getValue(name));
      return decodeURI(new URL(interpolated, 'http://127.0.0.1/spec/openapi.json').pathname);
    };
    return [interpolate((name) => toText(toObject(toObject(variables)[name]).default)), interpolate(() => secret)];
  });
}
