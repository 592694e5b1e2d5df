import { isRevealingName } from './revealed-credentials.ts';

/**
 * Placeholders in a request: `{{name}}` in collections, `${name}` in scripts, `<name>` in documentation. All spellings
 * are normalized to `{{name}}`.
 */

/** Values of variables, by name. The value of the first environment comes first. */
export type Variables = ReadonlyMap<string, readonly string[]>;

const placeholderPattern =
  /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}|\$\{([^{}]{1,200})\}|\{([\w.-]{1,100})\}|<([a-z_][\w .:-]{0,100})>|%7b%7b([\w.-]{1,100})%7d%7d|%7b([\w.-]{1,100})%7d|%3c([a-z_][\w.-]{0,100})%3e/gi;

/** Converts every placeholder spelling to `{{name}}`. */
export function normalizePlaceholders(text: string): string {
  return text.replaceAll(placeholderPattern, (...groups: unknown[]) => {
    const inner = groups.slice(1, 9).find((group) => group !== undefined);
    return `{{${toPlaceholderName(String(inner))}}}`;
  });
}

/** Normalizes `{{ name }}` and Insomnia tags. Leaves other text in headers and bodies unchanged. */
export function normalizeVariables(text: string): string {
  return text.replaceAll(
    /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}/g,
    (_, name?: string, tag?: string) => `{{${toPlaceholderName(name ?? tag ?? '')}}}`,
  );
}

/**
 * Returns the variable name for Insomnia's `_.user.id`, REST Client's `$dotenv KEY`, or a script's
 * `encodeURIComponent(id)`.
 */
export function toPlaceholderName(text: string): string {
  const trimmed = text
    .trim()
    .replace(/^_\s*(?:\.|\[)\s*/, '')
    .replace(/^(?:process\.env|import\.meta\.env)\./, '');
  const inner =
    /^\$(?:dotenv|processEnv|shared|prompt|env)\s+%?([\w.-]+)/i.exec(trimmed)?.[1] ??
    /\(\s*([\w.]+)\s*\)$/.exec(trimmed)?.[1] ??
    trimmed;
  // References the response to an earlier request, as in `login.response.body.$.token`.
  const [, request, path = ''] = /^([\w-]+)\.(?:response|request)\.(.*)$/s.exec(inner) ?? [];
  if (request !== undefined) return `${request}_${path.match(/[A-Za-z_][\w-]*/g)?.at(-1) ?? 'response'}`;
  if (/^[\w.-]+$/.test(inner)) return inner;
  const nameParts = inner.split(/[^\w.-]+/).filter((part) => part !== '');
  return (
    nameParts
      .slice(0, trimmed.startsWith('$') ? 1 : 3)
      .join('_')
      .slice(0, 60) || 'value'
  );
}

/** Returns true if a value contains or is a placeholder, such as `{{name}}` or `<string>`. */
export function isPlaceholder(value: string): boolean {
  return /\{\{|^<.*>$/s.test(value);
}

/** Collects the values of variables. The values of one name are in the order of the environments. */
export function collectVariables(entries: Iterable<readonly [name: string, value: string]>): Variables {
  const valuesByName = new Map<string, string[]>();
  for (const [name, value] of entries) {
    const key = toPlaceholderName(name);
    const values = valuesByName.get(key) ?? [];
    if (!values.includes(value) && values.length < maxValues) values.push(normalizeVariables(value));
    valuesByName.set(key, values);
  }
  return valuesByName;
}

const maxValues = 20;
const maxDepth = 5;
/**
 * Maximum number of characters of an expanded text. Variables may contain each other, so a text that grows longer is
 * left unexpanded.
 */
const maxLength = 4000;

/** Replaces variables that have exactly one value, including variables inside values. */
export function expandVariables(text: string, variables: Variables): string {
  let expanded = text;
  for (let depth = 0; depth < maxDepth && expanded.includes('{{'); depth++) {
    expanded = expanded.replaceAll(/\{\{([^{}]+)\}\}/g, (placeholder, name: string) => {
      const [value, ...otherValues] = variables.get(name) ?? [];
      return value === undefined || value === '' || otherValues.length > 0 ? placeholder : value;
    });
    if (expanded.length > maxLength) return text;
  }
  return expanded;
}

/** Returns the value of the variable if the text is a single variable, except for a possible credential. */
export function findExample(text: string, variables: Variables): string | undefined {
  const name = /^\{\{([^{}]+)\}\}$/.exec(text.trim())?.[1];
  const isHidden = name === undefined || isRevealingName(name);
  const value = isHidden ? undefined : expandVariables(variables.get(name)?.[0] ?? '', variables);
  return value === undefined || value === '' || isPlaceholder(value) ? undefined : value;
}
