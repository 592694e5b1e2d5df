import type { JsonSchema } from './json-schema.ts';
import { indexSchema } from './schema-index.ts';

/** Every name of a property that a schema declares. Other names in a value were chosen by its sender. */
export function declaredNames(root: JsonSchema): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { schema, keyword, name } of indexSchema(root)?.parts ?? []) {
    if (keyword === 'properties' && typeof name === 'string') names.add(name);
    if (Array.isArray(schema.required)) for (const required of schema.required) names.add(String(required));
  }
  return names;
}
