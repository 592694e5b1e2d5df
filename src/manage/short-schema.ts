type JsonObject = { [key: string]: unknown };

/** What a schema says about a value itself, as opposed to what is in it. */
const ofValue = ['type', 'description', 'enum', 'const', 'default'];
const lists = ['anyOf', 'oneOf', 'allOf'];

/**
 * A schema of fewer words, for a list that agents pay for with each conversation: `levels` of properties, and below them only
 * what a value is. References, which some clients do not read, become `{}`. What the whole schema takes fits it, too.
 */
export function shortSchema(schema: JsonObject, levels: number): JsonObject {
  const { $defs: _, $ref, ...rest } = schema;
  if ($ref !== undefined) return {};
  const inner = (value: unknown, depth: number) => (isObject(value) ? shortSchema(value, depth) : value);
  const kept = Object.entries(rest).flatMap(([keyword, value]): [string, unknown][] => {
    if (lists.includes(keyword)) return [[keyword, (value as unknown[]).map((part) => inner(part, levels))]];
    if (keyword === 'items') return [[keyword, inner(value, levels)]];
    if (levels > 0 && keyword === 'properties') {
      const named = Object.entries(value as JsonObject);
      return [[keyword, Object.fromEntries(named.map(([name, property]) => [name, inner(property, levels - 1)]))]];
    }
    if (levels > 0 && keyword === 'additionalProperties') return [[keyword, inner(value, levels - 1)]];
    return levels > 0 || ofValue.includes(keyword) ? [[keyword, value]] : [];
  });
  return Object.fromEntries(kept);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
