import { isRevealingName } from './revealing.ts';

/**
 * Parts of a request that stand for another value: `{{name}}` in collections, `${name}` in scripts, `<name>` in
 * documentation. They are read as `{{name}}`, whatever their spelling.
 */

/** Values of variables by their names, that of the first environment first. */
export type Variables = ReadonlyMap<string, readonly string[]>;

const spellings =
  /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}|\$\{([^{}]{1,200})\}|\{([\w.-]{1,100})\}|<([a-z_][\w .:-]{0,100})>|%7b%7b([\w.-]{1,100})%7d%7d|%7b([\w.-]{1,100})%7d|%3c([a-z_][\w.-]{0,100})%3e/gi;

/** Writes every spelling of a placeholder as `{{name}}`. */
export function normalizePlaceholders(text: string): string {
  return text.replaceAll(spellings, (...found: unknown[]) => {
    const inner = found.slice(1, 9).find((group) => group !== undefined);
    return `{{${placeholderName(String(inner))}}}`;
  });
}

/** Writes `{{ name }}` and the tags of Insomnia in the same way, and leaves every other text of a header or a body. */
export function normalizeVariables(text: string): string {
  return text.replaceAll(
    /\{\{([^{}]{1,200})\}\}|\{%([^{}%]{1,400})%\}/g,
    (_, name?: string, tag?: string) => `{{${placeholderName(name ?? tag ?? '')}}}`,
  );
}

/** `_.user.id` of Insomnia, `$dotenv KEY` of REST Client and `encodeURIComponent(id)` of a script are names of values. */
export function placeholderName(text: string): string {
  const plain = text
    .trim()
    .replace(/^_\s*(?:\.|\[)\s*/, '')
    .replace(/^(?:process\.env|import\.meta\.env)\./, '');
  const inner =
    /^\$(?:dotenv|processEnv|shared|prompt|env)\s+%?([\w.-]+)/i.exec(plain)?.[1] ??
    /\(\s*([\w.]+)\s*\)$/.exec(plain)?.[1] ??
    plain;
  // The answer to an earlier request, as in `login.response.body.$.token`.
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

/** Returns whether a value stands for another one, such as `{{name}}` and `<string>`. */
export function isPlaceholder(value: string): boolean {
  return /\{\{|^<.*>$/s.test(value);
}

/** The values of variables as the sources have them. A name that has several has them in the order of the sources. */
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
/** A text that grows beyond this stays as it is: variables may hold each other. */
const maxLength = 4000;

/** Fills the variables that have one value, and those inside these. */
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

/** The value of a text that is one variable, as an example of it; undefined for what may be a credential. */
export function findExample(text: string, variables: Variables): string | undefined {
  const name = /^\{\{([^{}]+)\}\}$/.exec(text.trim())?.[1];
  const isHidden = name === undefined || isRevealingName(name);
  const value = isHidden ? undefined : expandVariables(variables.get(name)?.[0] ?? '', variables);
  return value === undefined || value === '' || isPlaceholder(value) ? undefined : value;
}
