import { z } from 'zod';

/** Maximum number of descriptions that a server is based on. */
export const maxImportedDescriptions = 10;

/** Short enough that a prefix, an underscore, and the longest generated tool name fit into 64 characters. */
export const importPrefixPattern = /^[a-z][a-z0-9_]{0,14}$/;
export const importPrefixRule = 'allowed: a lowercase letter, then up to 14 lowercase letters, digits, and _';

const importedSchema = z.strictObject({
  id: z.string().min(1).max(100).describe('Import that this part of the configuration is based on.'),
  document: z.string().max(2048).optional().describe('URL of the API description.'),
  prefix: z
    .string()
    .regex(importPrefixPattern, importPrefixRule)
    .optional()
    .describe('Prefix of the tools, credentials, variables, and secrets of this description.'),
});

/** Descriptions that a server is based on. */
export const importsSchema = z
  .array(importedSchema)
  .min(1)
  .max(maxImportedDescriptions)
  .refine((imports) => new Set(imports.map(({ prefix }) => prefix)).size === imports.length, {
    message: 'two descriptions have the same prefix; at most one may have none',
  });

export type ImportedDescription = z.infer<typeof importedSchema>;

export const importedFields = Object.keys(importedSchema.shape);

const prefixedKeyPattern = /^([a-z][a-z0-9_]{0,14}): (.*)$/s;

/** Operation that a tool was imported from: its key in its description, and the prefix of the description. */
export type ImportedOperation = { key: string; prefix: string | undefined };

/** Parses `imported_from` of a tool, such as `GET /pets` or `mail: GET /messages`. */
export function parseImportedFrom(text: string): ImportedOperation {
  const [, prefix, key] = prefixedKeyPattern.exec(text) ?? [];
  return key === undefined ? { key: text, prefix: undefined } : { key, prefix };
}

export function formatImportedFrom({ key, prefix }: ImportedOperation): string {
  return prefix === undefined ? key : `${prefix}: ${key}`;
}

/** Identifies the imports that a configuration is based on. It changes with each import. */
export function getImportIds(imported: readonly ImportedDescription[] | undefined): string | undefined {
  return imported?.map(({ id }) => id).join(' ');
}
