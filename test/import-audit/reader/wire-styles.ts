/** Serializes values in the styles of OpenAPI (Parameter Object, "Style Values", and RFC 6570). */
import type { Value } from '../values.ts';
import type { Style } from './operations.ts';

/** Thrown for a value whose serialization no standard defines. */
export class UndefinedSerialization extends Error {}

export const encode = (text: string) =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** RFC 6570, 3.2.3: reserved characters are not encoded. */
const encodeUnsafe = (text: string) =>
  encode(text).replaceAll(/%(3A|2F|3F|23|5B|5D|40|21|24|26|27|28|29|2A|2B|2C|3B|3D)/g, decodeURIComponent);

export function toText(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value === null) throw new UndefinedSerialization('null in a style');
  throw new UndefinedSerialization('a list or an object inside a value of a style');
}

const isList = (value: Value): value is Value[] => Array.isArray(value);
const isMap = (value: Value): value is { [name: string]: Value } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);

/** Returns the pairs of a query or a form, encoded by `write`. */
export function writePairs(
  name: string,
  value: Value,
  style: Style,
  write = style.allowReserved ? encodeUnsafe : encode,
): [string, string][] {
  const key = write === encodeUnsafe ? encode(name) : write(name);
  const one = (item: Value) => write(toText(item));
  if (style.style === 'deepObject') {
    if (!isMap(value)) throw new UndefinedSerialization('deepObject of a value that is no object');
    return Object.entries(value).map(([inner, item]) => [write(`${name}[${inner}]`), one(item)]);
  }
  if (isList(value)) {
    if (style.explode) return value.map((item) => [key, one(item)]);
    return [[key, value.map(one).join(delimiters[style.style] ?? ',')]];
  }
  if (isMap(value)) {
    if (style.explode && style.style === 'form')
      return Object.entries(value).map(([inner, item]) => [write(inner), one(item)]);
    const flat = Object.entries(value).flatMap(([inner, item]) => [write(inner), one(item)]);
    return [[key, flat.join(delimiters[style.style] ?? ',')]];
  }
  return [[key, one(value)]];
}

/** OpenAPI 3.1.1, "Style Examples": the delimiters of these styles are percent-encoded. */
const delimiters: Record<string, string> = { form: ',', spaceDelimited: '%20', pipeDelimited: '%7C', tab: '%09' };

export function writePath(name: string, value: Value, { style, explode, allowReserved }: Style): string {
  const write = allowReserved ? encodeUnsafe : encode;
  const one = (item: Value) => write(toText(item));
  const delimiter: string =
    { label: '.', matrix: ',', spaceDelimited: '%20', pipeDelimited: '%7C', tab: '%09' }[style] ?? ',';
  if (style === 'label') {
    if (isMap(value)) return `.${toPairs(value, explode ? '=' : '.', one).join('.')}`;
    return `.${isList(value) ? value.map(one).join(explode ? '.' : ',') : one(value)}`;
  }
  if (style === 'matrix') {
    if (isList(value))
      return explode ? value.map((item) => `;${name}=${one(item)}`).join('') : `;${name}=${value.map(one).join(',')}`;
    if (isMap(value))
      return explode ? `;${toPairs(value, '=', one).join(';')}` : `;${name}=${toPairs(value, ',', one).join(',')}`;
    return `;${name}=${one(value)}`;
  }
  if (isList(value)) return value.map(one).join(delimiter);
  if (isMap(value)) return toPairs(value, explode ? '=' : ',', one).join(delimiter);
  return one(value);
}

const toPairs = (value: { [name: string]: Value }, between: string, one: (item: Value) => string) =>
  Object.entries(value).map(([inner, item]) => `${encode(inner)}${between}${one(item)}`);

/** Serializes a header: style `simple` without percent-encoding. */
export function writeHeader(value: Value, { explode, style }: Style): string {
  const delimiter = { spaceDelimited: ' ', pipeDelimited: '|', tab: '\t' }[style] ?? ',';
  if (isList(value)) return value.map(toText).join(delimiter);
  if (isMap(value))
    return Object.entries(value)
      .map(([inner, item]) => `${inner}${explode ? '=' : ','}${toText(item)}`)
      .join(delimiter);
  return toText(value);
}
