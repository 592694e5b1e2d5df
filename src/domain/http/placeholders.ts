/** `{{NAME}}` in a configuration: filled with a variable of the server, otherwise with one of its sealed secrets. */

export const secretNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const placeholder = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;

const placeholderAt = new RegExp(placeholder.source, 'y');

/** Looks at placeholders that are the same text, one after the other: their name, their length with braces, their number. */
export type PlaceholderVisit = (name: string, length: number, times: number) => boolean;

/** Visits the placeholders of a text until `visit` says true, and returns whether it did. Nothing is built. */
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

/** Visits the strings of a JSON value until `visit` says true, and returns whether it did. */
export function someText(value: unknown, visit: (text: string) => boolean): boolean {
  if (typeof value === 'string') return visit(value);
  if (typeof value !== 'object' || value === null) return false;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.some((one) => someText(one, visit));
}

/** Whether a text has something that looks like a placeholder but is not one; it would be sent literally. */
export function hasMalformedPlaceholder(value: string): boolean {
  const rest = value.replace(placeholder, '');
  return rest.includes('{{') || rest.includes('}}');
}

/** Fills every placeholder in one pass; placeholders inside a secret's value are not filled. */
export function fillPlaceholders(value: string, secret: (name: string) => string): string {
  return value.includes('{{') ? value.replace(placeholder, (_, name: string) => secret(name)) : value;
}

/** A text, or the name in a placeholder. */
export type PlaceholderPart = { text: string } | { secret: string };

/** Most placeholders in one field of a configuration. A secret is 300 times as long as the shortest of its placeholders. */
export const mostPlaceholders = 1000;

/** Whether the strings of a JSON value have more placeholders than `most`. */
export function hasMorePlaceholders(value: unknown, most: number): boolean {
  let count = 0;
  return someText(value, (text) => {
    if (text.includes('{{')) count += text.split('{{', most + 2).length - 1;
    return count > most;
  });
}

/** The problem of a field that has too many placeholders in its strings. */
export function crowdedProblem(value: unknown): string | undefined {
  if (!hasMorePlaceholders(value, mostPlaceholders)) return undefined;
  return `has more than ${mostPlaceholders} placeholders {{NAME}}; allowed: at most that many`;
}

/** The text around the placeholders of a value, and their names, in order. */
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

/** The names in the strings of a JSON value, such as a constant or the template of a body, each once. */
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
 * Fills the placeholders in the strings of a JSON value; names of properties stay. What is filled in stays one string,
 * whatever it holds.
 */
export function fillPlaceholdersIn(value: unknown, secret: (name: string) => string): unknown {
  if (typeof value === 'string') return fillPlaceholders(value, secret);
  if (Array.isArray(value)) return value.map((entry) => fillPlaceholdersIn(entry, secret));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fillPlaceholdersIn(entry, secret)]));
}
