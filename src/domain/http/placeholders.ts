/**
 * `{{NAME}}` in a configuration is replaced with a variable of the server or, if there is none, with a sealed secret.
 */

export const secretNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const placeholder = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;

const placeholderAt = new RegExp(placeholder.source, 'y');

/** Receives a run of identical placeholders: their name, their length including braces, and their number. */
export type PlaceholderVisit = (name: string, length: number, times: number) => boolean;

/** Visits the placeholders of a text until `visit` returns true, and returns whether it did. Creates no list. */
export function somePlaceholder(text: string, visit: PlaceholderVisit): boolean {
  let at = text.indexOf('{{');
  while (at >= 0) {
    placeholderAt.lastIndex = at;
    if (!placeholderAt.test(text)) {
      at = text.indexOf('{{', at + 1);
      continue;
    }
    const same = text.slice(at, placeholderAt.lastIndex);
    let times = 0;
    do {
      times++;
      at = text.indexOf('{{', at + same.length);
    } while (at >= 0 && text.startsWith(same, at));
    if (visit(same.slice(2, -2).trim(), same.length, times)) return true;
  }
  return false;
}

/** Visits the strings in a JSON value until `visit` returns true, and returns whether it did. */
export function someText(value: unknown, visit: (text: string) => boolean): boolean {
  if (typeof value === 'string') return visit(value);
  if (typeof value !== 'object' || value === null) return false;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.some((one) => someText(one, visit));
}

/**
 * Returns true if a text contains something that looks like a placeholder but is not one. It would be sent literally.
 */
export function hasMalformedPlaceholder(value: string): boolean {
  const rest = value.replace(placeholder, '');
  return rest.includes('{{') || rest.includes('}}');
}

/** Replaces every placeholder in one pass; placeholders inside a secret's value are not replaced. */
export function fillPlaceholders(value: string, secret: (name: string) => string): string {
  return value.includes('{{') ? value.replace(placeholder, (_, name: string) => secret(name)) : value;
}

/** Literal text, or the name in a placeholder. */
export type PlaceholderPart = { text: string } | { secret: string };

/**
 * Maximum number of placeholders in one field of a configuration. A secret may be 300 times as long as its shortest
 * placeholder.
 */
export const mostPlaceholders = 1000;

/** Returns true if the strings in a JSON value contain more placeholders than `most`. */
export function hasMorePlaceholders(value: unknown, most: number): boolean {
  let count = 0;
  return someText(value, (text) => {
    if (text.includes('{{')) count += text.split('{{', most + 2).length - 1;
    return count > most;
  });
}

/** Returns the problem of a field with too many placeholders in its strings. */
export function crowdedProblem(value: unknown): string | undefined {
  if (!hasMorePlaceholders(value, mostPlaceholders)) return undefined;
  return `has more than ${mostPlaceholders} placeholders {{NAME}}; use fewer`;
}

/** Splits a value into the text around its placeholders and their names, in order. */
export function placeholderParts(value: string): PlaceholderPart[] {
  const parts: PlaceholderPart[] = [];
  let from = 0;
  for (const match of value.matchAll(placeholder)) {
    if (match.index > from) parts.push({ text: value.slice(from, match.index) });
    parts.push({ secret: match[1] as string });
    from = match.index + match[0].length;
  }
  if (from < value.length) parts.push({ text: value.slice(from) });
  return parts;
}

/** Returns the distinct placeholder names in the strings of a JSON value, such as a constant or a body template. */
export function placeholderNames(value: unknown): string[] {
  const names = new Set<string>();
  const note = (name: string) => {
    names.add(name);
    return false;
  };
  someText(value, (text) => somePlaceholder(text, note));
  return [...names];
}

/**
 * Replaces the placeholders in the strings of a JSON value; property names stay. The result of a replacement stays one
 * string, whatever it contains.
 */
export function fillPlaceholdersIn(value: unknown, secret: (name: string) => string): unknown {
  if (typeof value === 'string') return fillPlaceholders(value, secret);
  if (Array.isArray(value)) return value.map((entry) => fillPlaceholdersIn(entry, secret));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fillPlaceholdersIn(entry, secret)]));
}
