import { isRevealingName } from './revealing.ts';

/**
 * Placeholders in a request: `{{name}}` in collections, `${name}` in scripts, `<name>` in documentation. All spellings
 * are normalized to `{{name}}`.
 */

/** Values of variables, by name. The value of the first environment comes first. */
export type Variables = ReadonlyMap<string, readonly string[]>;

const spellings =
  /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}|\$\{([^{}]{1,200})\}|\{([\w.-]{1,100})\}|<([a-z_][\w .:-]{0,100})>|%7b%7b([\w.-]{1,100})%7d%7d|%7b([\w.-]{1,100})%7d|%3c([a-z_][\w.-]{0,100})%3e/gi;

/** Converts every placeholder spelling to `{{name}}`. */
export function normalizePlaceholders(text: string): string {
  return text.replaceAll(spellings, (...found: unknown[]) => {
    const inner = found.slice(1, 9).find((group) => group !== undefined);
    return `{{${placeholderName(String(inner))}}}`;
  });
}

/** Normalizes `{{ name }}` and Insomnia tags. Leaves other text in headers and bodies unchanged. */
export function normalizeVariables(text: string): string {
  return text.replaceAll(
    /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}/g,
    (_, name?: string, tag?: string) => `{{${placeholderName(name ?? tag ?? '')}}}`,
  );
}

/**
 * Returns the variable name for Insomnia's `_.user.id`, REST Client's `$dotenv KEY`, or a script's
 * `encodeURIComponent(id)`.
 */
export function placeholderName(text: string): string {
  const plain = text
    .trim()
    .replace(/^_\s*(?:\.|\[)\s*/, '')
    .replace(/^(?:process\.env|import\.meta\.env)\./, '');
  const inner =
    /^\$(?:dotenv|processEnv|shared|prompt|env)\s+%?([\w.-]+)/i.exec(plain)?.[1] ??
    /\(\s*([\w.]+)\s*\)$/.exec(plain)?.[1] ??
    plain;
  // References the response to an earlier request, as in `login.response.body.$.token`.
  const [, request, path = ''] = /^([\w-]+)\.(?:response|request)\.(.*)$/s.exec(inner) ?? [];
  if (request !== undefined) return `${request}_${path.match(/[A-Za-z_][\w-]*/g)?.at(-1) ?? 'response'}`;
  if (/^[\w.-]+$/.test(inner)) return inner;
  const words = inner.split(/[^\w.-]+/).filter((word) => word !== '');
  return (
    words
      .slice(0, plain.startsWith('$') ? 1 : 3)
      .join('_')
      .slice(0, 60) || 'value'
  );
}

/** Returns true if a value contains or is a placeholder, such as `{{name}}` or `<string>`. */
export function isPlaceholder(value: string): boolean {
  return /\{\{|^<.*>$/s.test(value);
}

/** Collects the values of variables. Several values of one name keep the order of the sources. */
export function collectVariables(entries: Iterable<readonly [name: string, value: string]>): Variables {
  const found = new Map<string, string[]>();
  for (const [name, value] of entries) {
    const key = placeholderName(name);
    const values = found.get(key) ?? [];
    if (!values.includes(value) && values.length < maxValues) values.push(normalizeVariables(value));
    found.set(key, values);
  }
  return found;
}

const maxValues = 20;
const maxDepth = 5;
/**
 * Maximum length of an expanded text. A text that grows longer is left unexpanded, because variables may contain each
 * other.
 */
const maxLength = 4000;

/** Replaces variables that have exactly one value, including variables inside values. */
export function expandVariables(text: string, variables: Variables): string {
  let all = text;
  for (let depth = 0; depth < maxDepth && all.includes('{{'); depth++) {
    all = all.replaceAll(/\{\{([^{}]+)\}\}/g, (found, name: string) => {
      const [value, ...others] = variables.get(name) ?? [];
      return value === undefined || value === '' || others.length > 0 ? found : value;
    });
    if (all.length > maxLength) return text;
  }
  return all;
}

/**
 * Returns the value of a text that is a single variable, as an example. Returns undefined for a possible credential.
 */
export function findExample(text: string, variables: Variables): string | undefined {
  const name = /^\{\{([^{}]+)\}\}$/.exec(text.trim())?.[1];
  const isHidden = name === undefined || isRevealingName(name);
  const value = isHidden ? undefined : expandVariables(variables.get(name)?.[0] ?? '', variables);
  return value === undefined || value === '' || isPlaceholder(value) ? undefined : value;
}
