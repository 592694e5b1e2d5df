type JsonObject = { [key: string]: unknown };

/** What a short schema says about a value. Bounds are left out: a refusal names them. */
const ofValue = ['type', 'enum', 'const', 'format', 'default'];

/**
 * The schema of the inputs of a tool in few words, for a list that agents pay for with each conversation. It has one level:
 * an object is only described, with the names of its fields. What was `said` (see `meaningOf`) is not said again. Whatever
 * the whole schema takes fits this one too.
 */
export function shortSchema({ properties = {}, required }: JsonObject, said: Set<string>): JsonObject {
  const inputs = Object.entries(properties as JsonObject).map(([name, whole]): [string, JsonObject] => {
    const kinds = kindsOf(whole as JsonObject);
    const text = kinds.find(({ description }) => description !== undefined)?.description as string | undefined;
    const meaning = text && meaningOf(name, text);
    if (meaning && said.has(meaning)) return [name, shortValue(kinds, ['type'])];
    if (meaning) said.add(meaning);
    const description = [text, fieldsOf(kinds)].filter(Boolean).join(' ');
    return [name, { ...shortValue(kinds, ofValue), ...(description !== '' && { description }) }];
  });
  return { type: 'object', properties: Object.fromEntries(inputs), ...(required !== undefined && { required }) };
}

/** What an input of this name means, whichever tool has it. */
export function meaningOf(name: string, description: string | undefined): string {
  return `${name}: ${description}`;
}

/** The alternatives of a value, however they are nested; itself when there are none. */
function kindsOf(schema: JsonObject): JsonObject[] {
  const { anyOf, ...rest } = schema;
  if (anyOf === undefined) return [schema];
  return (anyOf as JsonObject[]).flatMap((kind) => kindsOf({ ...rest, ...kind }));
}

/** A value without what is in it. A reference, and a value of any type, is `{}`. */
function shortValue(kinds: readonly JsonObject[], keywords: readonly string[]): JsonObject {
  const [kind = {}, other, ...more] = kinds.map((schema): JsonObject => {
    const kept = Object.entries(schema).filter(([keyword]) => keywords.includes(keyword));
    const items = schema.type === 'array' && { items: shortValue(kindsOf(schema.items as JsonObject), ['type']) };
    return { ...Object.fromEntries(kept), ...items };
  });
  if (other === undefined) return kind;
  if (more.length === 0 && other.type === 'null' && kind.enum === undefined)
    return kind.type === undefined ? kind : { ...kind, type: [kind.type, 'null'] };
  return { anyOf: [kind, other, ...more] };
}

/** The names of the fields of the objects in a value. */
function fieldsOf(kinds: readonly JsonObject[]): string | undefined {
  const object = kinds.map(objectIn).find((found) => found !== undefined);
  if (object === undefined) return undefined;
  const required = new Set(object.required as string[] | undefined);
  const names = Object.keys(object.properties as object).map((name) => (required.has(name) ? `${name}*` : name));
  return `Fields: ${names.join(', ')}.`;
}

/** The object with fields that a value is, or whose entries it has. */
function objectIn(schema: JsonObject): JsonObject | undefined {
  if (schema.properties) return schema;
  const entries = schema.items ?? schema.additionalProperties;
  return typeof entries === 'object' && entries !== null ? objectIn(entries as JsonObject) : undefined;
}
