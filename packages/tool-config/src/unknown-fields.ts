import { pickClosestVariant } from '@toolhost/errors/problems';
import { isKnownKeyword } from '@toolhost/json-schema/schema-rules';
import type { z } from 'zod';
import { fieldSchema, isJsonSchemaForm } from './input-schema.ts';
import { type ServerConfig, serverConfigSchema } from './server-config.ts';

/** Fields whose keys are chosen by the tenant. These keys are omitted from messages. */
const recordNames = new Set(['credentials', 'variables', 'views', 'headers', 'extra_params', 'token_params', 'values']);

/** In both forms of an input schema, an argument has JSON Schema keywords and keywords of this service. */
const argumentSchema = fieldSchema.omit({ type: true, items: true, properties: true }).loose();

/**
 * Finds the first field, or the first value of a fixed set, that a newer version stored and this version does not know.
 * Returns its path without names that the tenant chose. Ignores other problems, because stored configurations were
 * valid once.
 */
export function findUnknownField(config: ServerConfig): string | undefined {
  const unknownPath = findUnknown(serverConfigSchema.safeParse(config, { reportInput: true }).error?.issues);
  if (unknownPath) return toPath(unknownPath);
  for (const { input_schema: schema = {} } of config.tools ?? []) {
    const inner = isJsonSchemaForm(schema) ? schema.properties : schema;
    for (const definition of Object.values(inner ?? {})) {
      if (typeof definition !== 'object' || definition === null) continue;
      const keyword =
        Object.keys(definition).find((name) => !(name in fieldSchema.shape || isKnownKeyword(name))) ??
        findUnknown(argumentSchema.safeParse(definition, { reportInput: true }).error?.issues)?.[0];
      if (keyword !== undefined) return `tools[].input_schema.*.${String(keyword)}`;
    }
  }
  return undefined;
}

/** Returns the path of the first unknown field or value. */
function findUnknown(issues: readonly z.core.$ZodIssue[] = []): PropertyKey[] | undefined {
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') return [...issue.path, issue.keys[0] ?? ''];
    // Values of a fixed set are strings; any other value is a different kind of problem.
    if (issue.code === 'invalid_value' && typeof issue.input === 'string') return issue.path;
    const inner = issue.code === 'invalid_union' ? findUnknown(pickClosestVariant(issue)) : undefined;
    if (inner) return inner;
  }
  return undefined;
}

function toPath(path: readonly PropertyKey[]): string {
  return path
    .map((segment, index) => {
      if (typeof segment === 'number') return '[]';
      const name = recordNames.has(String(path[index - 1])) ? '*' : String(segment);
      return index === 0 ? name : `.${name}`;
    })
    .join('');
}
