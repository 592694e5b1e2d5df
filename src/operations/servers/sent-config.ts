/** Configurations as the inputs of operations make them; `LongValue`s in these stay as they are. */

/** Fields as received. */
export type RawFields = { [field: string]: unknown };

export function replacement({ expected_version: _, ...config }: RawFields): RawFields {
  return config;
}

/** Fields of a stored configuration that a change removes with null. */
const removable = [
  'description',
  'authentication',
  'credentials',
  'oauth',
  'base_url',
  'headers',
  'forward_headers',
  'variables',
  'tool_mode',
  'max_answer_tokens',
  'views',
] as const;

/** Merges the fields of an update into a stored configuration. */
export function changed(config: object, { slug: _, expected_version: _version, ...fields }: RawFields): RawFields {
  const merged: RawFields = { ...config, ...fields };
  for (const field of removable) if (merged[field] === null) delete merged[field];
  return merged;
}

/**
 * The tool that an input adds, or changes: fields that are sent replace those of `before`, and null removes one. In an
 * input that adds a tool, `tool` is no field of it, and is refused as such.
 */
export function toolOfFields(input: RawFields, before: object | undefined): RawFields {
  const { slug: _, expected_version: _version, ...added } = input;
  if (!before) return added;
  const { tool: _tool, ...fields } = added;
  const merged: RawFields = { ...before, ...fields };
  for (const [name, value] of Object.entries(fields)) if (value === null) delete merged[name];
  return merged;
}

/**
 * The configuration of a server with one tool only. One tool is checked by it, so that a change costs the same however
 * many tools there are, and is not refused because of a tool that it leaves as it is.
 */
export function withOnly({ views: _, ...config }: RawFields, tool: unknown): RawFields {
  return { ...config, tools: [tool] };
}
