import type { Input } from '../../../src/operations/index.ts';
import type { JsonObject } from '../answers.ts';
import { isRawNumber } from '../exact-json.ts';

/** A configuration while it is edited: any part may be missing or wrong. Only the service checks it. */
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

/** A configuration as the operations take it. It may be unfinished; the service reports its problems. */
export function unchecked(config: Config): Input<'createMcpServer'> {
  return config as Input<'createMcpServer'>;
}

export type PathPart = string | number;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** `['tools', 2, 'url']` → `tools[2].url`, as the service writes it. */
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

/** A copy with one value changed; undefined removes it. */
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
 * Whether two values are the same JSON, with their names in the same order. Parts that a change has left are the same
 * object, and are not looked into.
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

/** The views by name. */
export function viewsOf(config: Config): JsonObject {
  return isObject(config.views) ? config.views : {};
}

/** The names of the credentials that a tool may have in place of that of the server. */
export function namedCredentials({ credentials }: Config): string[] {
  return isObject(credentials) ? Object.keys(credentials).filter((name) => name !== 'none') : [];
}

/** Whether agents do not get a tool. */
export function isDisabled(tool: unknown): boolean {
  return valueAt(tool, ['disabled']) === true;
}

/** Whether a tool only reads: as its owner says, or else as its method implies (RFC 9110, 9.2.1). */
export function isReadOnly(tool: JsonObject): boolean {
  const said = valueAt(tool, ['annotations', 'readOnlyHint']);
  return typeof said === 'boolean' ? said : /^(?:GET|HEAD|OPTIONS)$/.test(textOf(tool.method));
}

export function textOf(value: unknown): string {
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : String(value);
}

/** A name as a slug: `My Projects!` → `my-projects`. */
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
