/**
 * Builds requests with `swagger-client` and records them at the stub. The library gets only the called operation with
 * everything it references, and explicit defaults where it does not implement them completely.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isObject, type Json, type JsonObject, resolvePointer, toList, toObject } from './json.ts';
import { formType, type Inputs } from './reader/expected-request.ts';
import { type Encoding, getVersion, isIgnoredHeader, type Operation } from './reader/operations.ts';
import type { Value } from './values.ts';
import { isJsonType, readMediaType, readRequest, type Stub, type WireRequest } from './wire.ts';

type Library = {
  resolve(options: { spec: JsonObject }): Promise<{ spec: JsonObject; errors: unknown[] }>;
  execute(options: object): Promise<unknown>;
};

/** `unable` is the reason why the library cannot build a request. */
export type Built = { request: WireRequest } | { unable: string };

export type SwaggerClient = {
  build(document: JsonObject, operation: Operation, inputs: Inputs, basePath: string): Promise<Built>;
};

export function createSwaggerClient(folder: string, stub: Stub): SwaggerClient {
  const library = createRequire(join(folder, 'index.js'))('swagger-client') as Library;
  return {
    async build(document, operation, inputs, basePath) {
      const unable = findObstacle(document, operation, inputs);
      if (unable !== undefined) return { unable };
      const reduced = createReducedDocument(document, operation, inputs, stub.url + basePath.replace(/\/$/, ''));
      stub.take();
      try {
        const { spec } = await library.resolve({ spec: reduced });
        await library.execute({
          spec,
          pathName: operation.template,
          method: operation.method.toLowerCase(),
          ...toOptions(document, inputs),
        });
      } catch (error) {
        return { unable: `fails: ${String(error).slice(0, 200)}` };
      }
      const [arrived] = stub.take();
      return arrived ? { request: readRequest(arrived) } : { unable: 'sends nothing' };
    },
  };
}

function findObstacle(document: JsonObject, operation: Operation, { parameters, body }: Inputs): string | undefined {
  const type = readMediaType(body?.definition.mediaType ?? '');
  const cookies = [...parameters.keys()].filter(({ place }) => place === 'cookie');
  if (getVersion(document) === '3.2') return 'OpenAPI 3.2';
  if (operation.path.includes('?')) return 'a query in the path';
  if (operation.template.includes('//')) return 'an empty segment in the path';
  if (operation.method === 'TRACE') return 'the method TRACE';
  if (body && ['GET', 'HEAD'].includes(operation.method)) return 'a body of GET or HEAD, which fetch does not send';
  if (type.startsWith('multipart/') && type !== 'multipart/form-data') return `a body of ${type}`;
  if (type === 'multipart/form-data' && body && hasTypedField(body.value, body.definition.encoding))
    return 'a typed part without a file name, which FormData does not hold';
  return cookies.length > 1 ? 'several cookies, of which it keeps one' : undefined;
}

function hasTypedField(value: Value, encoding: ReadonlyMap<string, Encoding>): boolean {
  const isFile = (one: Value) => [one].flat().some((item) => item instanceof Uint8Array);
  const fields = Object.entries(toObject(value) as { [name: string]: Value }).filter(([, one]) => !isFile(one));
  return fields.some(([name, one]) => encoding.get(name)?.contentType !== undefined || [one].flat().some(isObject));
}

/** Returns a document with a single operation. */
function createReducedDocument(document: JsonObject, operation: Operation, inputs: Inputs, url: string): JsonObject {
  const item = toObject(follow(document, toObject(document.paths)[operation.path]));
  const { servers, security, ...own } = operation.raw;
  const declared = operation.parameters.filter(
    ({ place, name }) => place === 'path' && !isDeclared(document, [item, own], name),
  );
  const added = declared.map(
    ({ name }): JsonObject => ({
      name,
      in: 'path',
      required: true,
      ...(document.swagger === undefined ? { schema: { type: 'string' } } : { type: 'string' }),
    }),
  );
  const parameters = [...toList(item.parameters), ...toList(own.parameters), ...added];
  const reducedOperation: JsonObject = {
    ...own,
    parameters: removeOverridden(document, parameters),
    ...(inputs.body &&
      document.swagger === undefined && { requestBody: makeExplicit(document, own.requestBody, inputs) }),
  };
  const reduced: JsonObject = {
    ...(document.swagger === undefined
      ? { openapi: document.openapi as Json, servers: [{ url }] }
      : { swagger: '2.0', ...splitUrl(url), consumes: document.consumes ?? [] }),
    info: { title: 'One operation', version: '1' },
    paths: { [operation.template]: { [operation.method.toLowerCase()]: { ...reducedOperation, responses: {} } } },
  };
  copyReferences(document, reducedOperation, reduced, new Set());
  // Copies the document because the library modifies its input.
  return structuredClone(reduced);
}

const splitUrl = (url: string): JsonObject => ({
  host: new URL(url).host,
  basePath: new URL(url).pathname,
  schemes: ['http'],
});

function follow(document: JsonObject, value: Json | undefined): Json | undefined {
  return isObject(value) && typeof value.$ref === 'string' ? resolvePointer(document, value.$ref) : value;
}

/** Removes path-level parameters that the operation overrides. */
function removeOverridden(document: JsonObject, parameters: readonly Json[]): Json[] {
  const byName = new Map(
    parameters.map((one) => {
      const { in: place, name } = toObject(follow(document, one));
      return [`${place} ${name}`, one] as const;
    }),
  );
  return [...byName.values()].filter((one) => !isIgnoredHeader(toObject(follow(document, one))));
}

const isDeclared = (document: JsonObject, holders: readonly JsonObject[], name: string) =>
  holders.some((holder) =>
    toList(holder.parameters).some((one) => {
      const parameter = toObject(follow(document, one));
      return parameter.in === 'path' && parameter.name === name;
    }),
  );

/**
 * Writes the Encoding Object default for lists explicitly (OpenAPI 3.0.4, 4.7.15: style `form`, explode true), because
 * the library joins them with commas.
 */
function makeExplicit(document: JsonObject, requestBody: Json | undefined, { body }: Inputs): Json {
  const found = toObject(follow(document, requestBody));
  const type = readMediaType(body?.definition.mediaType ?? '');
  if (!body || (type !== formType && type !== 'multipart/form-data') || !isObject(body.value)) return found;
  const media = toObject(toObject(found.content)[body.definition.mediaType]);
  const encoding = { ...toObject(media.encoding) };
  for (const [name, value] of Object.entries(body.value))
    if (Array.isArray(value) && encoding[name] === undefined) encoding[name] = { style: 'form', explode: true };
  return { ...found, content: { [body.definition.mediaType]: { ...media, encoding } } };
}

function copyReferences(document: JsonObject, value: Json, target: JsonObject, done: Set<string>): void {
  if (Array.isArray(value)) for (const one of value) copyReferences(document, one, target, done);
  if (!isObject(value)) return;
  if (typeof value.$ref === 'string' && !done.has(value.$ref)) {
    done.add(value.$ref);
    const found = resolvePointer(document, value.$ref);
    if (found !== undefined) {
      putAt(target, value.$ref, found);
      copyReferences(document, found, target, done);
    }
  }
  for (const one of Object.values(value)) copyReferences(document, one, target, done);
}

function putAt(target: JsonObject, reference: string, value: Json): void {
  const names = reference
    .slice(1)
    .split('/')
    .slice(1)
    .map((name) => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'));
  const lastName = names.pop();
  let holder = target;
  for (const name of names) {
    if (!isObject(holder[name])) holder[name] = {};
    holder = holder[name] as JsonObject;
  }
  if (lastName !== undefined && holder[lastName] === undefined) holder[lastName] = value;
}

function toOptions(document: JsonObject, { parameters, body }: Inputs): object {
  const values: { [name: string]: unknown } = {};
  // The library expects JSON content as text.
  for (const [{ place, name, mediaType }, value] of parameters)
    values[`${place}.${name}`] = mediaType !== undefined && isJsonType(mediaType) ? JSON.stringify(value) : value;
  if (!body) return { parameters: values };
  const { definition, value } = body;
  const isForm = [formType, 'multipart/form-data'].includes(readMediaType(definition.mediaType));
  const isJson = isJsonType(definition.mediaType);
  const content = isForm ? toFields(value, definition.encoding) : isJson ? JSON.stringify(value) : toContent(value);
  if (document.swagger === undefined)
    return { parameters: values, requestBody: content, requestContentType: definition.mediaType };
  if (isForm) for (const [name, field] of Object.entries(toObject(content))) values[`formData.${name}`] = field;
  else values.body = content;
  return { parameters: values, requestContentType: definition.mediaType };
}

function toFields(value: Value, encoding: ReadonlyMap<string, Encoding>): object {
  const fields = Object.entries(toObject(value) as { [name: string]: Value });
  return Object.fromEntries(fields.map(([name, one]) => [name, toContent(one, encoding.get(name)?.contentType)]));
}

/** Returns bytes as a file of the first type in the encoding, because the library does not read the encoding. */
function toContent(value: Value, types?: string): unknown {
  if (Array.isArray(value)) return value.map((one) => toContent(one, types));
  if (!(value instanceof Uint8Array)) return value;
  const type = types?.split(',', 1)[0];
  return type === undefined ? Buffer.from(value) : new File([Buffer.from(value)], 'audit.bin', { type });
}
