import type { Input } from '@toolhost/server/operations';
import type { JsonObject } from '../api-types.ts';
import { isRawNumber } from '../exact-json.ts';

/** Configuration while it is being edited: any field may be missing or invalid. Only the service validates it. */
export type Config = JsonObject & {
  name?: unknown;
  slug?: unknown;
  description?: unknown;
  authentication?: unknown;
  credentials?: unknown;
  oauth?: unknown;
  login?: unknown;
  tools?: unknown;
  views?: unknown;
};

/** Casts a configuration to the operations' input type. It may be incomplete; the service reports its problems. */
export function asInput(config: Config): Input<'createMcpServer'> {
  return config as Input<'createMcpServer'>;
}

export type PathSegment = string | number;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Formats a path as the service does: `['tools', 2, 'url']` → `tools[2].url`. */
export function formatPath(path: readonly PathSegment[]): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    return text ? `${text}.${segment}` : segment;
  }, '');
}

export function getValueAt(value: unknown, path: readonly PathSegment[]): unknown {
  return path.reduce<unknown>((inner, segment) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, segment)) return undefined;
    return (inner as Record<PathSegment, unknown>)[segment];
  }, value);
}

/** Returns a copy with one value changed. Undefined removes it. */
export function withValue(value: unknown, path: readonly PathSegment[], next: unknown): unknown {
  const [segment, ...remainingPath] = path;
  if (segment === undefined) return next;
  if (typeof segment === 'number') {
    const list = Array.isArray(value) ? [...value] : [];
    list[segment] = withValue(list[segment], remainingPath, next);
    return list;
  }
  const object: JsonObject = isObject(value) ? { ...value } : {};
  const inner = withValue(object[segment], remainingPath, next);
  if (inner === undefined) delete object[segment];
  else object[segment] = inner;
  return object;
}

/**
 * Returns true if two values are equal as JSON, with names in the same order. Unchanged subtrees are the same object, so
 * they are not traversed.
 */
export function isJsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !isJsonEqual(a[i], b[i])) return false;
    return true;
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  const otherNames = Object.keys(b);
  return (
    names.length === otherNames.length &&
    names.every((name, index) => name === otherNames[index] && isJsonEqual(a[name], b[name]))
  );
}

const emptyList: readonly unknown[] = [];

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : emptyList;
}

export function getTools(config: Config): JsonObject[] {
  return asList(config.tools).map((tool) => (isObject(tool) ? tool : {}));
}

export function getViews(config: Config): JsonObject {
  return isObject(config.views) ? config.views : {};
}

/** Returns the fields that each person fills in when they log in. */
export function getLoginFields({ login }: Config): JsonObject[] {
  return asList(getValueAt(login, ['fields'])).map((field) => (isObject(field) ? field : {}));
}

/** Returns the names of values that belong to a person or a login, and are not secrets of the server. */
export function getPersonalNames(config: Config): string[] {
  const loginValues = getValueAt(config.oauth, ['values']);
  return [
    ...getLoginFields(config).map(({ name }) => asText(name)),
    ...(isObject(loginValues) ? Object.keys(loginValues) : []),
  ];
}

/** Returns the names of credentials that a tool may use instead of the server's. */
export function getCredentialNames({ credentials }: Config): string[] {
  return isObject(credentials) ? Object.keys(credentials).filter((name) => name !== 'none') : [];
}

/** Returns true if a tool is hidden from agents. */
export function isDisabled(tool: unknown): boolean {
  return getValueAt(tool, ['disabled']) === true;
}

/** Returns true if a tool is read-only, according to its annotation or else its method (RFC 9110, 9.2.1). */
export function isReadOnly(tool: JsonObject): boolean {
  const hint = getValueAt(tool, ['annotations', 'readOnlyHint']);
  return typeof hint === 'boolean' ? hint : /^(?:GET|HEAD|OPTIONS)$/.test(asText(tool.method));
}

export function asText(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'string' ? value : String(value ?? '');
}

/** Derives a slug from a name: `My Projects!` → `my-projects`. */
export function toSlug(name: string): string {
  const ascii = name.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return ascii
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 63)
    .replace(/-$/, '');
}

export const newTool: JsonObject = {
  name: '',
  description: '',
  method: 'GET',
  url: '',
  headers: {},
  input_schema: {},
};
