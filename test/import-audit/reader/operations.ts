/**
 * Reads the operations of a Swagger 2.0 or OpenAPI 3.0, 3.1, or 3.2 document into one form, as specified by each
 * version.
 */
import { isObject, type Json, type JsonObject, resolvePointer, toList, toObject, toText } from '../json.ts';

export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie' | 'querystring';

/** Serialization of a value: the styles of OpenAPI (RFC 6570), and `tab` for `tsv` of Swagger 2.0. */
export type Style = { style: string; explode: boolean; allowReserved: boolean };

export type Parameter = Style & {
  name: string;
  place: ParameterLocation;
  isRequired: boolean;
  schema: Json;
  description: string;
  /** Media type of a parameter with `content`, which alone determines its serialization. */
  mediaType?: string;
};

export type Encoding = Partial<Style> & { contentType?: string };

export type Body = { mediaType: string; schema: Json; encoding: ReadonlyMap<string, Encoding> };

export type Operation = {
  /** Method and path as written in the document, such as `GET /pets/{id}`. */
  key: string;
  method: string;
  path: string;
  /** Path without a fragment, and with `{name}` for `:name`. */
  template: string;
  parameters: Parameter[];
  bodies: Body[];
  isBodyRequired: boolean;
  /** Alternative security requirements; undefined if none is required. */
  security: JsonObject[] | undefined;
  raw: JsonObject;
};

export type Version = '2.0' | '3.0' | '3.1' | '3.2';

const fixedMethods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

export function getVersion(document: JsonObject): Version {
  if (toText(document.swagger).startsWith('2')) return '2.0';
  const openapi = toText(document.openapi);
  for (const version of ['3.2', '3.1'] as const) if (openapi.startsWith(version)) return version;
  return '3.0';
}

export function readOperations(document: JsonObject): Operation[] {
  const version = getVersion(document);
  return Object.entries(toObject(document.paths)).flatMap(([path, value]) => {
    const item = toObject(follow(document, value));
    if (!path.startsWith('/')) return [];
    const methods = version === '3.2' ? [...fixedMethods, 'query'] : fixedMethods;
    const fixed = methods.map((method): [string, Json | undefined] => [method.toUpperCase(), item[method]]);
    const more = version === '3.2' ? Object.entries(toObject(item.additionalOperations)) : [];
    return [...fixed, ...more]
      .filter(([, raw]) => isObject(raw))
      .map(([method, raw]) => readOperation(document, version, { method, path, item, raw: toObject(raw) }));
  });
}

/** Resolves references to objects other than schemas. */
function follow(document: JsonObject, value: Json | undefined): Json | undefined {
  let found = value;
  for (let steps = 0; steps < 20; steps++) {
    const reference = isObject(found) ? found.$ref : undefined;
    if (typeof reference !== 'string') return found;
    found = resolvePointer(document, reference);
  }
  return undefined;
}

type Found = { method: string; path: string; item: JsonObject; raw: JsonObject };

function readOperation(document: JsonObject, version: Version, { method, path, item, raw }: Found): Operation {
  const declared = new Map<string, JsonObject>();
  for (const one of [...toList(item.parameters), ...toList(raw.parameters)]) {
    const parameter = toObject(follow(document, one));
    declared.set(`${toText(parameter.in)} ${toText(parameter.name)}`, parameter);
  }
  const all = [...declared.values()];
  const parameters = all
    .filter((parameter) => isPlace(toText(parameter.in), version) && !isIgnoredHeader(parameter))
    .map((parameter) => (version === '2.0' ? readSwaggerParameter(parameter) : readParameter(parameter)));
  const { template, pairs } = splitTemplate(toTemplate(path));
  for (const [name, inner] of pairs) moveToQuery(parameters, name, inner);
  for (const [, name = ''] of template.matchAll(/\{([^{}]+)\}/g))
    if (!parameters.some((parameter) => parameter.name === name)) parameters.push(undeclaredPathParameter(name));
  const requestBody = toObject(follow(document, raw.requestBody));
  const swaggerBody = all.find((parameter) => parameter.in === 'body');
  return {
    key: `${method} ${path}`,
    method,
    path,
    template,
    parameters,
    bodies: version === '2.0' ? readSwaggerBodies(document, raw, all) : readBodies(document, requestBody),
    isBodyRequired: (version === '2.0' ? swaggerBody?.required : requestBody.required) === true,
    security: readSecurity(document, raw),
    raw,
  };
}

function isPlace(place: string, version: Version): place is ParameterLocation {
  return [
    'path',
    'query',
    'header',
    ...(version === '2.0' ? [] : ['cookie']),
    ...(version === '3.2' ? ['querystring'] : []),
  ].includes(place);
}

/**
 * Headers that are not inputs: those that "SHALL be ignored" (OpenAPI 3.x, Parameter Object), and those that the sender
 * of a request generates (RFC 9110, 6.4, 7.2, 7.6, 8.6, 10.1.5, 12.5.3).
 */
const ignoredHeaders = new Set([
  ...['accept', 'content-type', 'authorization', 'host', 'connection', 'content-length', 'transfer-encoding', 'te'],
  ...['trailer', 'upgrade', 'keep-alive', 'via', 'date', 'expect', 'accept-encoding', 'user-agent'],
]);

export const isIgnoredHeader = ({ in: place, name }: JsonObject) =>
  place === 'header' && ignoredHeaders.has(toText(name).toLowerCase());

/** Converts router segments such as `:name`, and removes the fragment, which is never sent. */
const toTemplate = (path: string) =>
  (path.split('#', 1)[0] as string).replaceAll(/(?<=\/):([A-Za-z_]\w*)(?=\/|$)/g, '{$1}');

/** Splits the pairs of a query such as `?zip={zip}` from a path. */
function splitTemplate(path: string): { template: string; pairs: [string, string][] } {
  const [pathname = '', query] = path.split('?', 2);
  const all = (query ?? '').split('&').filter((pair) => pair !== '');
  const isParameter = (pair: string) => /^[^=]+=\{[^{}]+\}$/.test(pair);
  const fixed = all.filter((pair) => !isParameter(pair));
  const pairs = all.filter(isParameter).map((pair): [string, string] => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 2, -1)];
  });
  return { template: fixed.length > 0 ? `${pathname}?${fixed.join('&')}` : pathname, pairs };
}

/** Adds a query parameter for a name in the path's query, unless it is already declared for the path or the query. */
function moveToQuery(parameters: Parameter[], name: string, inner: string): void {
  const declaredIndex = parameters.findIndex(
    (one) => one.name === inner && (one.place === 'path' || one.place === 'query'),
  );
  const [declared = undeclaredPathParameter(inner)] = declaredIndex < 0 ? [] : parameters.splice(declaredIndex, 1);
  const isQuery = declared.place === 'query';
  parameters.push({
    ...declared,
    name,
    place: 'query',
    isRequired: true,
    ...(!isQuery && { style: 'form', explode: true }),
  });
}

function undeclaredPathParameter(name: string): Parameter {
  const style = { style: 'simple', explode: false, allowReserved: false };
  return { name, place: 'path', isRequired: true, description: '', schema: { type: 'string' }, ...style };
}

function readParameter(parameter: JsonObject): Parameter {
  const place = parameter.in as ParameterLocation;
  const style = toText(parameter.style) || (place === 'query' || place === 'cookie' ? 'form' : 'simple');
  const [content] = Object.entries(toObject(parameter.content));
  return {
    name: toText(parameter.name),
    place,
    isRequired: place === 'path' || parameter.required === true,
    description: toText(parameter.description),
    schema: content ? (toObject(content[1]).schema ?? true) : (parameter.schema ?? true),
    ...(content && { mediaType: content[0] }),
    style,
    explode: typeof parameter.explode === 'boolean' ? parameter.explode : style === 'form' || style === 'cookie',
    allowReserved: parameter.allowReserved === true,
  };
}

/** Styles by `collectionFormat` (Swagger 2.0, Parameter Object); `csv` is the default. */
const collectionStyles: Record<string, Style> = {
  csv: { style: 'form', explode: false, allowReserved: false },
  ssv: { style: 'spaceDelimited', explode: false, allowReserved: false },
  tsv: { style: 'tab', explode: false, allowReserved: false },
  pipes: { style: 'pipeDelimited', explode: false, allowReserved: false },
  multi: { style: 'form', explode: true, allowReserved: false },
};

const getCollectionStyle = (parameter: JsonObject) =>
  collectionStyles[toText(parameter.collectionFormat)] ?? (collectionStyles.csv as Style);

function readSwaggerParameter(parameter: JsonObject): Parameter {
  const { name, in: place, required, description, collectionFormat, allowEmptyValue, ...schema } = parameter;
  const style = getCollectionStyle(parameter);
  const isSimple = (place === 'path' || place === 'header') && style.style === 'form';
  return {
    name: toText(name),
    place: place as ParameterLocation,
    isRequired: place === 'path' || required === true,
    description: toText(description),
    schema: isObject(schema.schema) ? schema.schema : schema,
    ...(isSimple ? { ...style, style: 'simple' } : style),
  };
}

function readBodies(document: JsonObject, requestBody: JsonObject): Body[] {
  return Object.entries(toObject(requestBody.content)).map(([mediaType, value]) => {
    const media = toObject(follow(document, value));
    const encoding = Object.entries(toObject(media.encoding)).map(([name, one]) => [name, readEncoding(one)] as const);
    return { mediaType, schema: media.schema ?? true, encoding: new Map(encoding) };
  });
}

function readEncoding(value: Json): Encoding {
  const { contentType, style, explode, allowReserved } = toObject(value);
  return {
    ...(typeof contentType === 'string' && { contentType }),
    ...(typeof style === 'string' && { style }),
    ...(typeof explode === 'boolean' && { explode }),
    ...(typeof allowReserved === 'boolean' && { allowReserved }),
  };
}

function readSwaggerBodies(document: JsonObject, raw: JsonObject, all: readonly JsonObject[]): Body[] {
  const consumes = toList(raw.consumes ?? document.consumes).map(toText);
  const body = all.find((parameter) => parameter.in === 'body');
  if (body) {
    const types = consumes.length > 0 ? consumes : ['application/json'];
    return types.map((mediaType) => ({ mediaType, schema: body.schema ?? true, encoding: new Map() }));
  }
  const fields = all.filter((parameter) => parameter.in === 'formData');
  if (fields.length === 0) return [];
  const hasFile = fields.some(({ type }) => type === 'file');
  const isForm = (type: string) => type === 'multipart/form-data' || (type === formType && !hasFile);
  const defaultType = hasFile ? 'multipart/form-data' : formType;
  const types = consumes.filter(isForm);
  const properties = fields.map((field) => [toText(field.name), readSwaggerParameter(field).schema] as const);
  const required = fields.filter((field) => field.required === true).map(({ name }) => toText(name));
  const schema: JsonObject = { type: 'object', properties: Object.fromEntries(properties), required };
  const encoding = new Map(fields.map((field) => [toText(field.name), getCollectionStyle(field)]));
  return (types.length > 0 ? types : [defaultType]).map((mediaType) => ({ mediaType, schema, encoding }));
}

const formType = 'application/x-www-form-urlencoded';

function readSecurity(document: JsonObject, raw: JsonObject): JsonObject[] | undefined {
  const requirements = toList(raw.security ?? document.security).map(toObject);
  return requirements.length === 0 || requirements.some((one) => Object.keys(one).length === 0)
    ? undefined
    : requirements;
}
