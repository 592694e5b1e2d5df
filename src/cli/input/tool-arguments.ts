import { parseJson } from '../../domain/json/json.ts';

/** `name=value` as given. The value is converted later, when the tool's schema is known. */
export type NamedText = [name: string, text: string];

/** @throws Error that says what is allowed */
export function namedText(argument: string): NamedText {
  const at = argument.indexOf('=');
  if (at < 1) throw new Error('allowed: name=value');
  return [argument.slice(0, at), argument.slice(at + 1)];
}

/** @throws Error that says what is allowed */
export function jsonArguments(text: string): { [name: string]: unknown } {
  const advice = `allowed: a JSON object, such as '{"id": 42}'`;
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new Error(advice);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(advice);
  return value as { [name: string]: unknown };
}

type Definition = { type?: unknown; items?: unknown };

/**
 * Converts texts to values. Where the schema wants something other than text, a text is parsed as JSON. A text that is
 * not valid JSON stays text, so that the service reports what it allows. A repeated argument becomes an array.
 */
export function typedArguments(
  texts: readonly NamedText[],
  properties: { [name: string]: unknown },
): { [name: string]: unknown } {
  const grouped = Map.groupBy(texts, ([name]) => name);
  return Object.fromEntries(
    [...grouped].map(([name, pairs]) => {
      const definition = asDefinition(Object.hasOwn(properties, name) ? properties[name] : undefined);
      const values = pairs.map(([, text]) => text);
      const [only] = values;
      if (isArray(definition)) return [name, arrayOf(values, definition)];
      return [
        name,
        values.length === 1 ? typed(only ?? '', definition) : values.map((text) => typed(text, definition)),
      ];
    }),
  );
}

function asDefinition(value: unknown): Definition {
  return typeof value === 'object' && value !== null ? value : {};
}

function isArray({ type }: Definition): boolean {
  return [type].flat().includes('array');
}

function arrayOf(texts: readonly string[], definition: Definition): unknown {
  const [only = ''] = texts;
  if (texts.length === 1 && only.trimStart().startsWith('[')) return typed(only, definition);
  return texts.map((text) => typed(text, asDefinition(definition.items)));
}

function typed(text: string, { type }: Definition): unknown {
  if (type === undefined || [type].flat().includes('string')) return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
