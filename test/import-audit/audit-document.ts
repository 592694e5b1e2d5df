/** Reads a document for the audit, and chooses the bodies of its operations. */
import { type JsonObject, toObject, toText } from './json.ts';
import { formType } from './reader/expected-request.ts';
import type { Body, Operation, Parameter, Version } from './reader/operations.ts';
import { createSchemas, type Schemas } from './reader/schemas.ts';
import type { Tool } from './tool-arguments.ts';
import { type Context, createValueMaker, type ValueMaker } from './values.ts';
import { isJsonType, readMediaType } from './wire.ts';

export type AuditDocument = {
  name: string;
  document: JsonObject;
  schemas: Schemas;
  maker: ValueMaker;
  /** Lowercase names of headers, query parameters, and cookies that carry credentials. */
  credentials: ReadonlySet<string>;
};

export function readAuditDocument(name: string, document: JsonObject, version: Version): AuditDocument {
  const schemas = createSchemas(document, version);
  return { name, document, schemas, maker: createValueMaker(schemas), credentials: findCredentialNames(document) };
}

/** Headers and query parameters of an AWS signature (Signature Version 4). */
const signatureNames = [
  ...['content-sha256', 'date', 'algorithm', 'credential', 'security-token', 'signature', 'signedheaders'],
].map((name) => `x-amz-${name}`);

function findCredentialNames(document: JsonObject): Set<string> {
  const components = toObject(toObject(document.components).securitySchemes);
  const names = Object.values({ ...components, ...toObject(document.securityDefinitions) }).flatMap((one) => {
    const scheme = toObject(one);
    // RFC 6750, 2.3: a bearer token as a query parameter.
    if (scheme.type === 'oauth2' || toText(scheme.scheme).toLowerCase() === 'bearer') return ['access_token'];
    if (scheme['x-amazon-apigateway-authtype'] === 'awsSigv4') return signatureNames;
    return [toText(scheme.name).toLowerCase()];
  });
  return new Set(names.filter((name) => name !== ''));
}

/** Returns true for a parameter that carries a credential according to a security scheme or its own description. */
export function isCredential(
  { credentials }: AuditDocument,
  { name, place, description }: Parameter,
  { security }: Operation,
): boolean {
  if (credentials.has(name.toLowerCase())) return true;
  const isDescribedAsCredential = /^(the |an? |your )?(api key|access token|auth(entication|orization)? token)\b/i.test(
    description,
  );
  return security !== undefined && place !== 'path' && isDescribedAsCredential;
}

/** Returns the context in which values of a parameter are generated. */
export function getParameterContext({ place, mediaType, style, explode, allowReserved }: Parameter): Context {
  if (mediaType !== undefined && isJsonType(mediaType)) return 'json';
  if (place === 'querystring') return 'form';
  if (place === 'query' && allowReserved) return 'reserved';
  return !explode && /Delimited|tab/.test(style) ? 'token' : place;
}

/**
 * Returns the context in which values of a body are generated; undefined if the document does not define its encoding.
 */
export function getBodyContext(body: Body, schemas: Schemas): Context | undefined {
  const type = readMediaType(body.mediaType);
  const resolved = schemas.resolve(schemas.convert(body.schema));
  const isText = typeof resolved === 'object' && resolved.type === 'string';
  if (isJsonType(type)) return 'json';
  if (type === '*/*' && typeof resolved === 'object' && ['object', 'array'].includes(String(resolved.type)))
    return 'json';
  if (type === formType) return isText ? undefined : 'form';
  if (type.startsWith('multipart/')) return isText ? undefined : 'multipart';
  if (type.startsWith('text/') && !type.endsWith('xml')) return 'json';
  return /xml|yaml|ndjson|jsonl|x-www/.test(type) ? undefined : 'bytes';
}

/** Returns the body that a tool sends, out of those that the document offers. */
export function chooseBody({ bodies }: Operation, tool: Tool): Body | undefined {
  const find = (test: (type: string) => boolean) => bodies.find(({ mediaType }) => test(readMediaType(mediaType)));
  const contentType = Object.entries(tool.headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const byType = contentType === undefined ? undefined : find((type) => type === readMediaType(toText(contentType)));
  if (byType) return byType;
  const isForm = (type: string) => type === formType;
  const isMultipart = (type: string) => type.startsWith('multipart/');
  if (tool.body === 'form') return find(isForm) ?? bodies[0];
  if (tool.body === 'multipart') return find(isMultipart) ?? bodies[0];
  const field = tool.body === undefined ? undefined : tool.fields.get(tool.body);
  if (field?.content === 'base64') {
    const isOther = (type: string) => !isJsonType(type) && !isForm(type) && !isMultipart(type);
    return find((type) => type === readMediaType(toText(field.media_type))) ?? find(isOther) ?? bodies[0];
  }
  return (
    find((type) => type === 'application/json') ?? find((type) => isJsonType(type) && !type.includes('*')) ?? bodies[0]
  );
}
