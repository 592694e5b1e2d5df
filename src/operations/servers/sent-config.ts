/**
 * Configurations as the inputs of operations make them. The same functions make them on the event loop, of an input that
 * was parsed, and on a thread, of one that was not (`LongConfig`).
 */
import { parseJson } from '../../domain/json/json.ts';
import type { InputText, LongInput } from '../../domain/json/long-input.ts';
import { AppError, invalid } from '../../errors.ts';

/** Fields as received. */
export type RawFields = { [field: string]: unknown };

/** A fault of a whole input. */
export type InputFault = { kind: 'invalid' | 'tooLarge'; message: string };

/** PostgreSQL cannot store U+0000 in a text. */
export const nulFault: InputFault = {
  kind: 'invalid',
  message: 'a text holds the character U+0000; leave it out',
};

export function errorOfFault({ kind, message }: InputFault): AppError {
  return kind === 'invalid' ? invalid([{ path: '', message }]) : new AppError(kind, message);
}

/** How the fields of an input become a configuration. Texts are JSON of what is stored. */
export type Recipe =
  | { kind: 'whole' }
  /** A whole configuration with `expected_version` beside it. */
  | { kind: 'replacement' }
  | { kind: 'change'; config: string }
  /** One tool, in the configuration of its server; `tool` is the stored one that it changes. */
  | { kind: 'tool'; config: string; tool: string | undefined };

/** A configuration that a thread makes of a long input. */
export class LongConfig {
  readonly input: LongInput;
  readonly recipe: Recipe;

  constructor(input: LongInput, recipe: Recipe) {
    this.input = input;
    this.recipe = recipe;
  }
}

/** The same as it is transferred. */
export type LongConfigText = InputText & { recipe: Recipe };

/** What a recipe makes of the fields of an input, and the tool in it where it is about one. */
export function configOfFields(fields: RawFields, recipe: Recipe): { config: RawFields; tool?: RawFields } {
  switch (recipe.kind) {
    case 'whole':
      return { config: fields };
    case 'replacement':
      return { config: replacement(fields) };
    case 'change':
      return { config: changed(parsed(recipe.config), fields) };
    case 'tool': {
      const tool = toolOfFields(fields, recipe.tool === undefined ? undefined : parsed(recipe.tool));
      return { config: withOnly(parsed(recipe.config), tool), tool };
    }
  }
}

const parsed = (text: string) => parseJson(text) as RawFields;

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
