import { type Part, parseParts, tokenPattern } from '../../http/url-template.ts';

/** A JSON body with arguments in it. */
export type BodyTemplate = {
  root: BodyNode;
  /** The arguments in it. */
  names: readonly string[];
  /** How often an argument occurs that occurs more than once. */
  repeats: readonly (readonly [name: string, count: number])[];
};

export type BodyNode =
  | { kind: 'literal'; value: unknown }
  | { kind: 'argument'; name: string }
  | { kind: 'text'; parts: readonly Part[] }
  | { kind: 'array'; items: readonly BodyNode[] }
  | { kind: 'object'; entries: readonly (readonly [name: string, value: BodyNode])[] };

/** Parses the `body_template` of a tool; `declared` are the names of its arguments. */
export function parseBodyTemplate(template: unknown, declared: readonly string[]): BodyTemplate {
  const token = tokenPattern(declared, 'y');
  const counts = new Map<string, number>();
  const root = nodeOf(template, (text) => {
    const parts = parseParts(text, token, []);
    for (const part of parts) {
      if ('argument' in part) counts.set(part.argument, (counts.get(part.argument) ?? 0) + 1);
    }
    return parts;
  });
  return { root, names: [...counts.keys()], repeats: [...counts].filter(([, count]) => count > 1) };
}

function nodeOf(value: unknown, parse: (text: string) => Part[]): BodyNode {
  if (typeof value === 'string') return textNode(value, parse(value));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return { kind: 'literal', value };
  if (Array.isArray(value)) return { kind: 'array', items: value.map((item) => nodeOf(item, parse)) };
  return { kind: 'object', entries: Object.entries(value).map(([name, inner]) => [name, nodeOf(inner, parse)]) };
}

function textNode(value: string, parts: readonly Part[]): BodyNode {
  const [first] = parts;
  if (parts.length === 1 && first && 'argument' in first) return { kind: 'argument', name: first.argument };
  return parts.some((part) => !('text' in part)) ? { kind: 'text', parts } : { kind: 'literal', value };
}
