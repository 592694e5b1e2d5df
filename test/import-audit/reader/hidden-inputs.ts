/** Finds inputs of a document that the schema of a tool does not accept or does not show. */
import { isObject, type Json, type JsonObject, toList, toObject } from '../json.ts';
import { escapeToken, type Trace } from '../values.ts';
import type { Add } from './expected-outcome.ts';
import type { Schemas } from './schemas.ts';

type Schema = JsonObject | boolean;
type LossReporter = { at: string; add: Add };

const maxLevels = 6;
const maxNodes = 3000;

type Search = LossReporter & { trace: Trace };

/** Reports properties of a value that the tool's schema does not accept. */
export function findMissing(value: Json, pointer: string, toolSchemas: readonly Schema[], search: Search): boolean {
  const { at, add, trace } = search;
  const applying = toolSchemas.flatMap(flatten);
  if (Array.isArray(value)) {
    const itemsAt = (index: number) =>
      applying.map(({ items, prefixItems }) => (toList(prefixItems)[index] ?? items ?? true) as Schema);
    return value.every((one, index) => findMissing(one, `${pointer}/${index}`, itemsAt(index), search));
  }
  if (!isObject(value)) return true;
  let isWhole = true;
  for (const [name, one] of Object.entries(value)) {
    const place = `${pointer}/${escapeToken(name)}`;
    const declared = applying
      .filter(({ properties }) => name in toObject(properties))
      .map(({ properties }) => toObject(properties)[name] as Schema);
    if (declared.length > 0) isWhole = findMissing(one, place, declared, search) && isWhole;
    else if (applying.some(isOpen)) {
      if (trace.get(pointer)?.some(({ properties }) => name in toObject(properties)))
        add({ kind: 'loosened', at: at + place, what: 'not shown' });
    } else {
      isWhole = false;
      add({ kind: 'missing', at: at + place, what: 'input' });
    }
  }
  return isWhole;
}

const isOpen = (schema: JsonObject) => schema.additionalProperties !== false;

/** Returns a schema and all schemas that it is composed of. */
function flatten(schema: Schema): JsonObject[] {
  if (typeof schema === 'boolean') return schema ? [{}] : [];
  const parts = [...toList(schema.allOf), ...toList(schema.anyOf), ...toList(schema.oneOf)] as Schema[];
  const { allOf, anyOf, oneOf, ...own } = schema;
  const hasOwn = parts.length === 0 || 'properties' in own || 'items' in own;
  return [...(hasOwn ? [own as JsonObject] : []), ...parts.flatMap(flatten)];
}

/** Compares the properties of both schemas in all alternatives, independently of their values. */
export function findHidden(documentSchema: Schema, toolSchema: Schema, schemas: Schemas, reporter: LossReporter): void {
  let nodes = 0;
  const compareProperties = (
    documentSchemas: readonly Json[],
    candidates: readonly Schema[],
    pointer: string,
    level: number,
  ): void => {
    if (level > maxLevels || ++nodes > maxNodes) return;
    const documentParts = documentSchemas.flatMap((schema) => expand(schema as Schema, schemas));
    const toolParts = candidates.flatMap(flatten);
    const items = documentParts.filter((schema) => 'items' in schema).map((schema) => schema.items as Json);
    if (items.length > 0)
      compareProperties(
        items,
        toolParts.map((schema) => (schema.items ?? true) as Schema),
        `${pointer}/0`,
        level + 1,
      );
    const names = new Set(documentParts.flatMap((schema) => Object.keys(toObject(schema.properties))));
    for (const name of names) {
      const place = `${pointer}/${escapeToken(name)}`;
      const declared = listProperty(toolParts, name) as Schema[];
      if (declared.length > 0) compareProperties(listProperty(documentParts, name), declared, place, level + 1);
      else if (toolParts.some(isOpen)) reporter.add({ kind: 'loosened', at: reporter.at + place, what: 'not shown' });
      else reporter.add({ kind: 'missing', at: reporter.at + place, what: 'input' });
    }
  };
  compareProperties([documentSchema as Json], [toolSchema], '', 0);
}

const listProperty = (schemas: readonly JsonObject[], name: string) =>
  schemas
    .filter(({ properties }) => name in toObject(properties))
    .map(({ properties }) => toObject(properties)[name] as Json);

/** Returns a schema and all schemas that may apply with it. */
function expand(schema: Schema, schemas: Schemas, steps = 0): JsonObject[] {
  const resolved = schemas.resolve(schema);
  if (typeof resolved === 'boolean' || steps > 12) return [];
  const { allOf, anyOf, if: condition, then, else: otherwise, dependentSchemas } = resolved;
  const more = [...toList(allOf), ...toList(anyOf), ...Object.values(toObject(dependentSchemas))];
  const conditional = [condition, then, otherwise].filter((one) => one !== undefined);
  return [resolved, ...[...more, ...conditional].flatMap((one) => expand(one as Schema, schemas, steps + 1))];
}
