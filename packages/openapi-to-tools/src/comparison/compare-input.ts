import { isFields, toText } from '../document/lenient.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import type { Loss, SchemaComparison } from './compare-schema.ts';
import type { InputDescription } from './described-inputs.ts';
import type { ToolInput } from './tool-inputs.ts';

/** Compares a described input with the argument or the constant that represents it. */
export function compareInput(input: InputDescription, offered: ToolInput, schemas: SchemaComparison): Loss[] {
  const { name, isRequired, schema } = input;
  const { definition } = offered;
  if (offered.value !== undefined) return compareConstant(input, offered.value, schemas);
  const losses: Loss[] = [];
  if (isRequired && !offered.isRequired) losses.push({ kind: 'loosened', note: 'required' });
  if (!isRequired && offered.isRequired) losses.push({ kind: 'partial', note: `leaving out ${quoteShort(name)}` });
  // Receivers treat `name[]` as a list even if the description does not say so.
  const isList = name.endsWith('[]') && definition.type === 'array';
  const described = isList && schemas.isScalar(schema) ? { type: 'array', items: schema } : schema;
  return [...losses, ...schemas.compare(described, definition, { name, depth: 0, trail: [], text: 'value' })];
}

/** Compares a constant with the only allowed value of an input, or with the value that the document suggests. */
function compareConstant(
  { name, schema, suggested }: InputDescription,
  value: unknown,
  schemas: SchemaComparison,
): Loss[] {
  const toComparable = (input: unknown) =>
    isFields(input) || Array.isArray(input) ? JSON.stringify(input) : toText(input);
  if (suggested.some((suggestion) => toComparable(suggestion) === toComparable(value))) return [];
  return schemas.compare(schema, { enum: [value] }, { name, depth: 0, trail: [], text: 'value' });
}
