import type { Input } from '../../../src/operations/index.ts';
import type { JsonObject } from '../answers.ts';
import { isRawNumber } from '../exact-json.ts';

/** Configuration while it is being edited: any field may be missing or invalid. Only the service validates it. */
export type Config = JsonObject & {
  name?: unknown;
  slug?: unknown;
  description?: unknown;
  authentication?: unknown;
  credentials?: unknown;
  oauth?: unknown;
  tools?: unknown;
  views?: unknown;
};

/** Casts a configuration to the operations' input type. It may be incomplete; the service reports its problems. */
export function unchecked(config: Config): Input<'createMcpServer'> {
  return config as Input<'createMcpServer'>;
}

export type PathPart = string | number;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Formats a path as the service does: `['tools', 2, 'url']` → `tools[2].url`. */
export function pathText(path: readonly PathPart[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    '',
  );
}

export function valueAt(value: unknown, path: readonly PathPart[]): unknown {
  return path.reduce<unknown>((inner, part) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, part)) return undefined;
    return (inner as Record<PathPart, unknown>)[part];
  }, value);
}

/** Returns a copy with one value changed. Undefined removes it. */
export function withValue(value: unknown, path: readonly PathPart[], next: unknown): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return next;
  if (typeof part === 'number') {
    const list = Array.isArray(value) ? [...value] : [];
    list[part] = withValue(list[part], rest, next);
    return list;
  }
  const object: JsonObject = isObject(value) ? { ...value } : {};
  const inner = withValue(object[part], rest, next);
  if (inner === undefined) delete object[part];
  else object[part] = inner;
  return object;
}

/**
 * Returns true if two values are the same JSON, with names in the same order. Unchanged subtrees are the same object
 * and are not traversed.
 */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i] && !sameJson(a[i], b[i])) return false;
    return true;
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  const others = Object.keys(b);
  return names.length === others.length && names.every((name, at) => name === others[at] && sameJson(a[name], b[name]));
}

const none: readonly unknown[] = [];

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : none;
}

export function toolsOf(config: Config): JsonObject[] {
  return listOf(config.tools).map((tool) => (isObject(tool) ? tool : {}));
}

/** Returns the views by name. */
export function viewsOf(config: Config): JsonObject {
  return isObject(config.views) ? config.views : {};
}

/** Returns the names of credentials that a tool may use instead of the server's. */
export function namedCredentials({ credentials }: Config): string[] {
  return isObject(credentials) ? Object.keys(credentials).filter((name) => name !== 'none') : [];
}

/** Returns true if a tool is hidden from agents. */
export function isDisabled(tool: unknown): boolean {
  return valueAt(tool, ['disabled']) === true;
}

/** Returns true if a tool is read-only, according to its annotation or else its method (RFC 9110, 9.2.1). */
export function isReadOnly(tool: JsonObject): boolean {
  const said = valueAt(tool, ['annotations', 'readOnlyHint']);
  return typeof said === 'boolean' ? said : /^(?:GET|HEAD|OPTIONS)$/.test(textOf(tool.method));
}

export function textOf(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : String(value);
}

/** Derives a slug from a name: `My Projects!` → `my-projects`. */
export function slugFrom(name: string): string {
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
