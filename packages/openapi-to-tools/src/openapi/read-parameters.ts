import { getField, isFields, type JsonFields, toEntries, toList, toText } from '../document/lenient.ts';
import type { References } from '../document/references.ts';
import { type ApiInput, type Finding, type InputStyle, inputLocations } from '../model.ts';

/** Parameters of an operation, including the Swagger 2 parameters that form its body. */
export type Parameters = {
  inputs: ApiInput[];
  bodyParameter: JsonFields | undefined;
  formParameters: JsonFields[];
  /** Reason why nothing can be sent: a required input was left out. */
  unsupportedReason: string | undefined;
};

/** State that the readers share for one document. */
export type ReadContext = { references: References; isSwagger: boolean; addFinding: (finding: Finding) => void };

/** Reads parameters. Parameters of a later list replace those of an earlier list with the same name and location. */
export function readParameters(lists: readonly { at: string; value: unknown }[], context: ReadContext): Parameters {
  const byKey = new Map<string, JsonFields>();
  for (const { at, value } of lists) {
    for (const [index, item] of toList(value).entries()) {
      const { value: parameter, problem } = context.references.follow(item);
      if (problem !== undefined || !isFields(parameter)) {
        context.addFinding({ at: `${at}[${index}]`, message: problem ?? 'is not a parameter; left out' });
        continue;
      }
      byKey.set(`${toText(parameter.in)} ${toText(parameter.name)}`, parameter);
    }
  }
  const parameters = [...byKey.values()];
  const at = lists.at(-1)?.at ?? '';
  const unsupported = parameters.find(
    (parameter) => parameter.required === true && !isSupportedLocation(parameter, context),
  );
  return {
    unsupportedReason: unsupported && `an input in ${JSON.stringify(toText(unsupported.in).slice(0, 20))}`,
    inputs: parameters.flatMap((parameter) => readParameter(parameter, at, context)),
    bodyParameter: context.isSwagger ? parameters.find((parameter) => parameter.in === 'body') : undefined,
    formParameters: context.isSwagger ? parameters.filter((parameter) => parameter.in === 'formData') : [],
  };
}

function isSupportedLocation({ in: location }: JsonFields, { isSwagger }: ReadContext): boolean {
  return (
    inputLocations.some((allowed) => allowed === location) ||
    (isSwagger && /^(?:body|formData)$/.test(toText(location)))
  );
}

function readParameter(parameter: JsonFields, at: string, context: ReadContext): ApiInput[] {
  const name = toText(parameter.name).trim();
  const declaredLocation = toText(parameter.in);
  if (context.isSwagger && (declaredLocation === 'body' || declaredLocation === 'formData')) return [];
  const location = inputLocations.find((allowed) => allowed === declaredLocation);
  if (name === '' || location === undefined) {
    const message = `parameter ${JSON.stringify(name.slice(0, 60))} in ${JSON.stringify(declaredLocation.slice(0, 20))} is left out; allowed: ${inputLocations.join(', ')}`;
    context.addFinding({ at, message });
    return [];
  }
  const [content] = toEntries(parameter.content);
  const misplaced = context.isSwagger ? undefined : findMisplacedSchema(parameter);
  if (misplaced)
    context.addFinding({ at, message: `${misplacedMessage}: schema of the parameter ${JSON.stringify(name)}` });
  const directSchema = context.isSwagger ? parameter : (misplaced ?? parameter.schema ?? {});
  const isForm = location === 'querystring' && /x-www-form-urlencoded/i.test(content?.[0] ?? '');
  const declaredSchema = content ? getField(content[1], 'schema') : directSchema;
  const isList = !content && location === 'query' && name.endsWith('[]');
  const schema = isList ? toListSchema(declaredSchema, context) : declaredSchema;
  const style = isForm
    ? 'repeat'
    : content
      ? getContentStyle(content[0])
      : getStyle(parameter, location, schema, context);
  return [
    {
      name,
      // Form fields are separate pairs, like query parameters.
      location: isForm ? 'query' : location,
      required: parameter.required === true || parameter.required === 'true' || location === 'path',
      description: toText(parameter.description),
      schema: addExample(schema, parameter),
      style,
      allowsSlashes: location === 'path' && (parameter.allowReserved === true || parameter['x-multi-segment'] === true),
      ...(location === 'query' && parameter.allowReserved === true && { allowsReserved: true }),
      ...(location === 'path' && !content && getPathPrefix(parameter, name)),
    },
  ];
}

export const misplacedMessage = 'a schema is in the wrong place and is read as if it were in the right one';

const structuralKeywords = ['type', 'properties', 'items', 'enum', 'allOf', 'oneOf', 'anyOf', 'additionalProperties'];
const constraintKeywords =
  'format default nullable pattern minimum maximum minLength maxLength minItems maxItems multipleOf'.split(' ');

/** Returns a schema whose keywords are written directly in a parameter or media type instead of in `schema`. */
export function findMisplacedSchema(holder: JsonFields): JsonFields | undefined {
  if (holder.schema !== undefined || holder.content !== undefined) return undefined;
  if (!structuralKeywords.some((keyword) => holder[keyword] !== undefined)) return undefined;
  const keywords = [
    ...structuralKeywords,
    ...constraintKeywords,
    ...(Array.isArray(holder.required) ? ['required'] : []),
  ];
  return Object.fromEntries(
    keywords.flatMap((keyword) => (holder[keyword] === undefined ? [] : [[keyword, holder[keyword]]])),
  );
}

/**
 * Returns the prefix of a path value. `/{id}` is sent as `/;id=5` in the style `matrix`, and as `/.5` in the style
 * `label` (RFC 6570, 3.2.5 and 3.2.7).
 */
function getPathPrefix({ style }: JsonFields, name: string): { prefix?: string } {
  if (style === 'label') return { prefix: '.' };
  return style === 'matrix' ? { prefix: `;${encodeURIComponent(name.toWellFormed())}=` } : {};
}

/**
 * Converts the schema of a `name[]` parameter to an array. Receivers treat it as a list even if the description does
 * not say so.
 */
function toListSchema(schema: unknown, { references, isSwagger }: ReadContext): unknown {
  const type = [getField(references.follow(schema).value, 'type')].flat();
  const isScalar = type.every((name) => ['string', 'integer', 'number'].includes(toText(name))) && type.length > 0;
  if (!isScalar) return schema;
  if (!isSwagger || !isFields(schema)) return { type: 'array', items: schema };
  const { name: _, in: _in, required: _required, description: _description, ...items } = schema;
  return { type: 'array', items, collectionFormat: 'multi' };
}

/** Adds the example of a parameter, which is next to its schema, to the schema. */
function addExample(schema: unknown, { example }: JsonFields): unknown {
  return isFields(schema) && example !== undefined && schema.example === undefined && schema.$ref === undefined
    ? { ...schema, example }
    : schema;
}

function getContentStyle(mediaType: string): InputStyle | undefined {
  return /json/i.test(mediaType) ? 'json' : undefined;
}

/** Returns the style of an array or object, or undefined for other values and if the default of tools applies. */
function getStyle(
  parameter: JsonFields,
  location: string,
  schema: unknown,
  context: ReadContext,
): InputStyle | undefined {
  const resolved = context.references.follow(schema).value;
  const { isArray, isObject } = findTypes(resolved, context);
  if (isArray && !isObject) {
    return context.isSwagger
      ? getSwaggerStyle(isFields(resolved) ? resolved : parameter)
      : getArrayStyle(parameter, location);
  }
  const isDeep = parameter.style === 'deepObject' && location === 'query';
  if (!isObject || context.isSwagger) return isDeep ? 'deep' : undefined;
  if (isDeep) return 'deep';
  if (location === 'query') return parameter.explode === false ? 'comma' : 'repeat';
  return parameter.explode === true ? 'exploded' : 'comma';
}

/** Tells if a schema, or one of its alternatives, allows arrays or objects. */
function findTypes(resolved: unknown, context: ReadContext, depth = 0): { isArray: boolean; isObject: boolean } {
  const type = [getField(resolved, 'type')].flat();
  const inner = ['oneOf', 'anyOf', 'allOf']
    .flatMap((name) => toList(getField(resolved, name)))
    .slice(0, depth < maxAlternativeDepth ? maxAlternatives : 0)
    .map((alternative) => findTypes(context.references.follow(alternative).value, context, depth + 1));
  const hasFields = ['properties', 'additionalProperties'].some((name) => isFields(getField(resolved, name)));
  return {
    isArray:
      type.includes('array') || getField(resolved, 'items') !== undefined || inner.some(({ isArray }) => isArray),
    isObject: type.includes('object') || hasFields || inner.some(({ isObject }) => isObject),
  };
}

const maxAlternativeDepth = 3;
const maxAlternatives = 20;

function getArrayStyle({ style, explode }: JsonFields, location: string): InputStyle | undefined {
  // In a path, `explode` changes arrays only in the styles `matrix` and `label`.
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
export function getSwaggerStyle(parameter: JsonFields): InputStyle {
  return swaggerStyles.get(toText(parameter.collectionFormat)) ?? 'comma';
}
