/** `{{NAME}}` in a configuration: filled with a variable of the server, otherwise with one of its sealed secrets. */

export const secretNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const placeholder = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;

/** The names in a value, in order, each once. */
export function placeholderNames(value: string): string[] {
  if (!value.includes('{{')) return [];
  return [...new Set([...value.matchAll(placeholder)].map((match) => match[1] as string))];
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
  withStrings(value, (text) => {
    if (count <= most && text.includes('{{')) count += text.split('{{', most + 2).length - 1;
    return text;
  });
  return count > most;
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

/** A JSON value with the result of `change` in place of each of its strings; names of properties stay. */
function withStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((entry) => withStrings(entry, change));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, withStrings(entry, change)]));
}

/** The names in the strings of a JSON value, such as a constant or the template of a body, each once. */
export function placeholderNamesIn(value: unknown): string[] {
  const names = new Set<string>();
  withStrings(value, (text) => {
    for (const name of placeholderNames(text)) names.add(name);
    return text;
  });
  return [...names];
}

/** Fills the placeholders in the strings of a JSON value. What is filled in stays one string, whatever it holds. */
export function fillPlaceholdersIn(value: unknown, secret: (name: string) => string): unknown {
  return withStrings(value, (text) => fillPlaceholders(text, secret));
}
