/**
 * `{{NAME}}` in a configuration is replaced with a variable of the server or, if there is none, with a sealed secret.
 */

export const secretNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const placeholderPattern = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;

const stickyPlaceholderPattern = new RegExp(placeholderPattern.source, 'y');

/** Called for a run of identical placeholders with their name, their length including braces, and their number. */
export type PlaceholderVisitor = (name: string, length: number, count: number) => boolean;

/** Visits the placeholders of a text until `visit` returns true. Returns true in this case. Creates no list. */
export function somePlaceholder(text: string, visit: PlaceholderVisitor): boolean {
  let position = text.indexOf('{{');
  while (position >= 0) {
    stickyPlaceholderPattern.lastIndex = position;
    if (!stickyPlaceholderPattern.test(text)) {
      position = text.indexOf('{{', position + 1);
      continue;
    }
    const placeholderText = text.slice(position, stickyPlaceholderPattern.lastIndex);
    let count = 0;
    do {
      count++;
      position = text.indexOf('{{', position + placeholderText.length);
    } while (position >= 0 && text.startsWith(placeholderText, position));
    if (visit(placeholderText.slice(2, -2).trim(), placeholderText.length, count)) return true;
  }
  return false;
}

/** Visits the strings in a JSON value until `visit` returns true. Returns true in this case. */
export function someString(value: unknown, visit: (text: string) => boolean): boolean {
  if (typeof value === 'string') return visit(value);
  if (typeof value !== 'object' || value === null) return false;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.some((item) => someString(item, visit));
}

/**
 * Returns true if a text contains something that looks like a placeholder but is not one. It would be sent literally.
 */
export function hasMalformedPlaceholder(value: string): boolean {
  const remainder = value.replace(placeholderPattern, '');
  return remainder.includes('{{') || remainder.includes('}}');
}

/** Replaces every placeholder in one pass; placeholders inside a secret's value are not replaced. */
export function interpolatePlaceholders(value: string, getSecret: (name: string) => string): string {
  return value.includes('{{') ? value.replace(placeholderPattern, (_, name: string) => getSecret(name)) : value;
}

/** Literal text, or the name in a placeholder. */
export type PlaceholderPart = { text: string } | { secret: string };

/**
 * Maximum number of placeholders in one field of a configuration, because a secret may be 300 times as long as its
 * placeholder.
 */
export const maxPlaceholders = 1000;

/** Returns true if the strings in a JSON value contain more placeholders than `max`. */
export function hasMorePlaceholders(value: unknown, max: number): boolean {
  let count = 0;
  return someString(value, (text) => {
    if (text.includes('{{')) count += text.split('{{', max + 2).length - 1;
    return count > max;
  });
}

/** Returns the problem of a field with too many placeholders in its strings. */
export function getPlaceholderLimitProblem(value: unknown): string | undefined {
  if (!hasMorePlaceholders(value, maxPlaceholders)) return undefined;
  return `has more than ${maxPlaceholders} placeholders {{NAME}}; use fewer`;
}

/** Splits a value into the text around its placeholders and their names, in order. */
export function splitPlaceholders(value: string): PlaceholderPart[] {
  const parts: PlaceholderPart[] = [];
  let from = 0;
  for (const match of value.matchAll(placeholderPattern)) {
    if (match.index > from) parts.push({ text: value.slice(from, match.index) });
    parts.push({ secret: match[1] as string });
    from = match.index + match[0].length;
  }
  if (from < value.length) parts.push({ text: value.slice(from) });
  return parts;
}

/** Returns the distinct placeholder names in the strings of a JSON value, such as a constant or a body template. */
export function getPlaceholderNames(value: unknown): string[] {
  const names = new Set<string>();
  const addName = (name: string) => {
    names.add(name);
    return false;
  };
  someString(value, (text) => somePlaceholder(text, addName));
  return [...names];
}

/**
 * Replaces the placeholders in the strings of a JSON value; property names stay. The result of a replacement stays one
 * string, whatever it contains.
 */
export function interpolateDeep(value: unknown, getSecret: (name: string) => string): unknown {
  if (typeof value === 'string') return interpolatePlaceholders(value, getSecret);
  if (Array.isArray(value)) return value.map((entry) => interpolateDeep(entry, getSecret));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, interpolateDeep(entry, getSecret)]));
}
