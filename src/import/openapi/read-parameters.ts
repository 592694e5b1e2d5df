import { asText, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { References } from '../document/references.ts';
import { type ApiInput, type Finding, type InputStyle, inputLocations } from '../model.ts';

/** Parameters of an operation, including the Swagger 2 parameters that form its body. */
export type Parameters = {
  inputs: ApiInput[];
  bodyParameter: JsonFields | undefined;
  formParameters: JsonFields[];
  /** Reason why nothing can be sent: a required input was left out. */
  unreadable: string | undefined;
};

/** State that the readers share for one document. `add` reports a finding. */
export type DocumentReading = { references: References; isSwagger: boolean; add: (finding: Finding) => void };

/** Reads parameters. Operation parameters replace path parameters with the same name and location. */
export function readParameters(lists: readonly { at: string; value: unknown }[], reading: DocumentReading): Parameters {
  const byKey = new Map<string, JsonFields>();
  for (const { at, value } of lists) {
    for (const [index, item] of listOf(value).entries()) {
      const { value: parameter, problem } = reading.references.follow(item);
      if (problem !== undefined || !isFields(parameter)) {
        reading.add({ at: `${at}[${index}]`, message: problem ?? 'is not a parameter; left out' });
        continue;
      }
      byKey.set(`${asText(parameter.in)} ${asText(parameter.name)}`, parameter);
    }
  }
  const all = [...byKey.values()];
  const at = lists.at(-1)?.at ?? '';
  const unplaced = all.find((parameter) => parameter.required === true && !isPlaced(parameter, reading));
  return {
    unreadable: unplaced && `an input in ${JSON.stringify(asText(unplaced.in).slice(0, 20))}`,
    inputs: all.flatMap((parameter) => readParameter(parameter, at, reading)),
    bodyParameter: reading.isSwagger ? all.find((parameter) => parameter.in === 'body') : undefined,
    formParameters: reading.isSwagger ? all.filter((parameter) => parameter.in === 'formData') : [],
  };
}

function isPlaced({ in: location }: JsonFields, { isSwagger }: DocumentReading): boolean {
  return (
    inputLocations.some((allowed) => allowed === location) ||
    (isSwagger && /^(?:body|formData)$/.test(asText(location)))
  );
}

function readParameter(parameter: JsonFields, at: string, reading: DocumentReading): ApiInput[] {
  const name = asText(parameter.name).trim();
  const found = asText(parameter.in);
  if (reading.isSwagger && (found === 'body' || found === 'formData')) return [];
  const location = inputLocations.find((allowed) => allowed === found);
  if (name === '' || location === undefined) {
    const message = `parameter ${JSON.stringify(name.slice(0, 60))} in ${JSON.stringify(found.slice(0, 20))} is left out; allowed: ${inputLocations.join(', ')}`;
    reading.add({ at, message });
    return [];
  }
  const [content] = entriesOf(parameter.content);
  const misplaced = reading.isSwagger ? undefined : misplacedSchema(parameter);
  if (misplaced) reading.add({ at, message: `${atWrongPlace}: schema of the parameter ${JSON.stringify(name)}` });
  const described = reading.isSwagger ? parameter : (misplaced ?? parameter.schema ?? {});
  const isForm = location === 'querystring' && /x-www-form-urlencoded/i.test(content?.[0] ?? '');
  const given = content ? field(content[1], 'schema') : described;
  const isList = !content && location === 'query' && name.endsWith('[]');
  const schema = isList ? asList(given, reading) : given;
  const style = isForm ? 'repeat' : content ? contentStyle(content[0]) : styleOf(parameter, location, schema, reading);
  return [
    {
      name,
      // Form fields are separate pairs, like query parameters.
      location: isForm ? 'query' : location,
      required: parameter.required === true || parameter.required === 'true' || location === 'path',
      description: asText(parameter.description),
      schema: withExample(schema, parameter),
      style,
      allowSlashes: location === 'path' && (parameter.allowReserved === true || parameter['x-multi-segment'] === true),
      ...(location === 'query' && parameter.allowReserved === true && { allowReserved: true }),
      ...(location === 'path' && !content && pathPrefix(parameter, name)),
    },
  ];
}

export const atWrongPlace = 'a schema is in the wrong place and is read as if it were in the right one';

const schemaParts = ['type', 'properties', 'items', 'enum', 'allOf', 'oneOf', 'anyOf', 'additionalProperties'];
const schemaRules =
  'format default nullable pattern minimum maximum minLength maxLength minItems maxItems multipleOf'.split(' ');

/** Returns a schema whose keywords are written directly in a parameter or media type instead of in `schema`. */
export function misplacedSchema(holder: JsonFields): JsonFields | undefined {
  if (holder.schema !== undefined || holder.content !== undefined) return undefined;
  if (!schemaParts.some((keyword) => holder[keyword] !== undefined)) return undefined;
  const own = [...schemaParts, ...schemaRules, ...(Array.isArray(holder.required) ? ['required'] : [])];
  return Object.fromEntries(
    own.flatMap((keyword) => (holder[keyword] === undefined ? [] : [[keyword, holder[keyword]]])),
  );
}

/**
 * Returns the prefix of a path value. `/{id}` is sent as `/;id=5` in the style `matrix`, and as `/.5` in the style
 * `label` (RFC 6570, 3.2.5 and 3.2.7).
 */
function pathPrefix({ style }: JsonFields, name: string): { prefix?: string } {
  if (style === 'label') return { prefix: '.' };
  return style === 'matrix' ? { prefix: `;${encodeURIComponent(name.toWellFormed())}=` } : {};
}

/**
 * Converts the schema of a `name[]` parameter to an array. Receivers treat it as a list even if the description does
 * not say so.
 */
function asList(schema: unknown, { references, isSwagger }: DocumentReading): unknown {
  const type = [field(references.follow(schema).value, 'type')].flat();
  const isOne = type.every((one) => ['string', 'integer', 'number'].includes(asText(one))) && type.length > 0;
  if (!isOne) return schema;
  if (!isSwagger || !isFields(schema)) return { type: 'array', items: schema };
  const { name: _, in: _in, required: _required, description: _description, ...items } = schema;
  return { type: 'array', items, collectionFormat: 'multi' };
}

/** Adds the example to a schema. Parameters have it next to the schema. */
function withExample(schema: unknown, { example }: JsonFields): unknown {
  return isFields(schema) && example !== undefined && schema.example === undefined && schema.$ref === undefined
    ? { ...schema, example }
    : schema;
}

function contentStyle(mediaType: string): InputStyle | undefined {
  return /json/i.test(mediaType) ? 'json' : undefined;
}

/** Returns the style of arrays and objects. Returns undefined for other values and if the tool default applies. */
function styleOf(
  parameter: JsonFields,
  location: string,
  schema: unknown,
  reading: DocumentReading,
): InputStyle | undefined {
  const resolved = reading.references.follow(schema).value;
  const { isArray, isObject } = kindsOf(resolved, reading);
  if (isArray && !isObject) {
    return reading.isSwagger
      ? swaggerStyle(isFields(resolved) ? resolved : parameter)
      : arrayStyle(parameter, location);
  }
  const isDeep = parameter.style === 'deepObject' && location === 'query';
  if (!isObject || reading.isSwagger) return isDeep ? 'deep' : undefined;
  if (isDeep) return 'deep';
  if (location === 'query') return parameter.explode === false ? 'comma' : 'repeat';
  return parameter.explode === true ? 'exploded' : 'comma';
}

/** Returns true per type if a schema or one of its alternatives allows it. */
function kindsOf(resolved: unknown, reading: DocumentReading, depth = 0): { isArray: boolean; isObject: boolean } {
  const type = [field(resolved, 'type')].flat();
  const inner = ['oneOf', 'anyOf', 'allOf']
    .flatMap((name) => listOf(field(resolved, name)))
    .slice(0, depth < deepestAlternatives ? mostAlternatives : 0)
    .map((alternative) => kindsOf(reading.references.follow(alternative).value, reading, depth + 1));
  const hasFields = ['properties', 'additionalProperties'].some((name) => isFields(field(resolved, name)));
  return {
    isArray: type.includes('array') || field(resolved, 'items') !== undefined || inner.some(({ isArray }) => isArray),
    isObject: type.includes('object') || hasFields || inner.some(({ isObject }) => isObject),
  };
}

const deepestAlternatives = 3;
const mostAlternatives = 20;

function arrayStyle({ style, explode }: JsonFields, location: string): InputStyle | undefined {
  // Only in the styles `matrix` and `label`.
  if (location === 'path' && explode === true && style !== undefined && style !== 'simple') return 'exploded';
  if (location !== 'query') return 'comma';
  if (style === 'deepObject') return 'brackets';
  if (explode === true || (explode === undefined && (style === undefined || style === 'form'))) return 'repeat';
  if (style === 'spaceDelimited') return 'space';
  return style === 'pipeDelimited' ? 'pipe' : 'comma';
}

const swaggerStyles: ReadonlyMap<string, InputStyle> = new Map(
  Object.entries({ csv: 'comma', ssv: 'space', tsv: 'tab', pipes: 'pipe', multi: 'repeat' } as const),
);

/** Returns the style for `collectionFormat` of Swagger 2; the default is comma-separated. */
export function swaggerStyle(parameter: JsonFields): InputStyle {
  return swaggerStyles.get(asText(parameter.collectionFormat)) ?? 'comma';
}
