/** `{{NAME}}` in header values and in `authentication.token`, filled from the server's own sealed secrets. */

export const secretNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const placeholder = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;

/** The names in a value, in order, each once. */
export function placeholderNames(value: string): string[] {
  return [...new Set([...value.matchAll(placeholder)].map((match) => match[1] as string))];
}

/** Whether a text has something that looks like a placeholder but is not one; it would be sent literally. */
export function hasMalformedPlaceholder(value: string): boolean {
  const rest = value.replace(placeholder, '');
  return rest.includes('{{') || rest.includes('}}');
}

/** Fills every placeholder in one pass; placeholders inside a secret's value are not filled. */
export function fillPlaceholders(value: string, secret: (name: string) => string): string {
  return value.replace(placeholder, (_, name: string) => secret(name));
}
