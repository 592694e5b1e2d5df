import { serverConfigSchema } from '@toolhost/tool-config/server-config';
import { toolSchema } from '@toolhost/tool-config/tool';
import { viewSchema } from '@toolhost/tool-config/view';
import { z } from 'zod';

/**
 * Names of the schemas that become types of generated clients. Only the OpenAPI document uses them. Agents and editors
 * get schemas without references.
 */
class SchemaNames extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get<Schema extends z.core.$ZodType>(schema: Schema) {
    const { id } = super.get(schema) ?? {};
    return { ...z.globalRegistry.get(schema), ...(id !== undefined && { id }) };
  }
}

export const schemaNames = new SchemaNames();

/** Sets the name of a schema in the OpenAPI document. */
export function nameSchema(id: string, schema: z.ZodType): void {
  schemaNames.add(schema, { id });
}

nameSchema('ServerConfig', serverConfigSchema);
nameSchema('Tool', toolSchema);
nameSchema('View', viewSchema);
