import { asText, asTexts, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import { References } from '../document/references.ts';
import type { ApiAnswers, ApiDescription, ApiOperation, ApiServer, Finding, ServerVariable } from '../model.ts';
import { mediaTypesOf, readRequestBody, readSwaggerBody } from './read-body.ts';
import { type DocumentReading, readParameters } from './read-parameters.ts';
import { type PathForm, readRoutes } from './read-route.ts';
import { readRequirements, readSchemes } from './read-security.ts';

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'];

/** Returns true if a document declares OpenAPI or Swagger, or has OpenAPI paths. */
export function isOpenApi(root: unknown): root is JsonFields {
  return isFields(root) && (root.openapi !== undefined || root.swagger !== undefined || isFields(root.paths));
}

/**
 * Reads Swagger 2 and OpenAPI 3.0 to 3.2. Rejects nothing: parts that cannot be read are reported with their location.
 */
export function readOpenApi(root: JsonFields): ApiDescription {
  const findings: Finding[] = [];
  const isSwagger = root.swagger !== undefined && root.openapi === undefined;
  const references = new References(root);
  const reading: DocumentReading = { references, isSwagger, add: (finding) => findings.push(finding) };
  const info = root.info;
  return {
    format: isSwagger ? 'Swagger' : 'OpenAPI',
    version: asText(root.openapi ?? root.swagger),
    title: asText(field(info, 'title')),
    description: asText(field(info, 'description')),
    tags: listOf(root.tags).flatMap((tag) => {
      const name = asText(field(tag, 'name'));
      return name === '' ? [] : [{ name, description: asText(field(tag, 'description')) }];
    }),
    servers: isSwagger ? readSwaggerServers(root) : (readServers(root.servers) ?? [ownServer]),
    operations: entriesOf(references.follow(root.paths).value).flatMap(([path, item]) =>
      readPath(path, item, root, reading),
    ),
    schemes: readSchemes(root, references),
    root,
    findings,
  };
}

function readPath(path: string, value: unknown, root: JsonFields, reading: DocumentReading): ApiOperation[] {
  if (path.startsWith('x-')) return [];
  const at = `paths.${path}`;
  const { value: item, problem } = reading.references.follow(value);
  if (problem !== undefined || !isFields(item)) {
    reading.add({ at, message: problem ?? 'is not an object of operations; left out' });
    return [];
  }
  const named = entriesOf(item).filter(([name]) => methods.includes(name.toLowerCase()));
  const additional = entriesOf(item.additionalOperations);
  return [...named, ...additional].flatMap(([method, operation]) => {
    const { value: found, problem: fault } = reading.references.follow(operation);
    if (isFields(found)) return readOperation({ path, method, item, operation: found }, root, reading);
    reading.add({ at: `${at}.${method}`, message: fault ?? 'is not an operation; left out' });
    return [];
  });
}

type Found = { path: string; method: string; item: JsonFields; operation: JsonFields };

function readOperation(
  { path, method, item, operation }: Found,
  root: JsonFields,
  reading: DocumentReading,
): ApiOperation[] {
  const at = `paths.${path}.${method}`;
  const parameters = readParameters(
    [
      { at: `paths.${path}.parameters`, value: item.parameters },
      { at: `${at}.parameters`, value: operation.parameters },
    ],
    reading,
  );
  const body = reading.isSwagger
    ? readSwaggerBody(parameters, mediaTypesOf(operation, root, 'consumes'))
    : readRequestBody(operation.requestBody, `${at}.requestBody`, reading);
  const read = readRoutes(path, parameters.inputs);
  const whole: PathForm = { path, route: path, inputs: parameters.inputs, without: [] };
  const isNew = ({ path: other, without }: PathForm) =>
    without.length === 0 || !isFields(field(field(root.paths, other), method.toLowerCase()));
  const id = asText(operation.operationId);
  const routes = 'routes' in read ? read.routes.filter(isNew) : [whole];
  return routes.map(({ path: written, route, inputs, without }) => ({
    at,
    method: method.toUpperCase(),
    path: written,
    route,
    operationId: (without.length === 0 || id === '' ? id : `${id}_without_${without.join('_')}`) || undefined,
    tags: asTexts(operation.tags),
    summary: asText(operation.summary) || asText(item.summary),
    description: asText(operation.description) || asText(item.description),
    isDeprecated: operation.deprecated === true,
    inputs,
    body,
    security: readRequirements(operation.security) ?? readRequirements(root.security) ?? [],
    servers: reading.isSwagger ? undefined : (readServers(operation.servers) ?? readServers(item.servers)),
    answers: readAnswers(operation, root, reading),
    unreadable: parameters.unreadable ?? ('problem' in read ? read.problem : undefined),
  }));
}

/** Reads media types, headers, and the schema of the successful responses. */
function readAnswers(operation: JsonFields, root: JsonFields, reading: DocumentReading): ApiAnswers {
  const mediaTypes = new Set<string>();
  const headers = new Set<string>();
  const statuses: string[] = [];
  let described: unknown;
  for (const [status, value] of entriesOf(operation.responses)) {
    const answer = reading.references.follow(value).value;
    if (!isFields(answer)) continue;
    statuses.push(status);
    if (!/^(2|3|default)/i.test(status)) continue;
    for (const [name] of entriesOf(answer.headers)) headers.add(name);
    if (!/^(2|default)/i.test(status)) continue;
    for (const [type] of entriesOf(answer.content)) mediaTypes.add(type.trim());
    const contents = entriesOf(answer.content).filter(([type]) => /\bjson\b|\*\/\*/.test(type));
    described ??= reading.isSwagger ? answer.schema : field(contents[0]?.[1], 'schema');
  }
  if (reading.isSwagger) for (const type of mediaTypesOf(operation, root, 'produces')) mediaTypes.add(type.trim());
  const isRedirect =
    statuses.some((status) => /^3/.test(status)) && !statuses.some((status) => /^(2|default)/i.test(status));
  const fields = fieldsOf(described, reading, 1);
  return { mediaTypes: [...mediaTypes], headers: [...headers], isRedirect, fields, schema: described };
}

const mostFields = 60;

/** Returns the field names of an object, and of nested objects down to `levels` levels deep. */
function fieldsOf(schema: unknown, reading: DocumentReading, below: number): string[] {
  const { value } = reading.references.follow(schema);
  const parts = [value, ...listOf(field(value, 'allOf')).map((part) => reading.references.follow(part).value)];
  const properties = parts.flatMap((part) => entriesOf(field(part, 'properties'))).slice(0, mostFields);
  return properties.flatMap(([name, property]) => {
    const inner = below > 0 ? fieldsOf(property, reading, below - 1) : [];
    return [name, ...inner.map((path) => `${name}.${path}`)];
  });
}

/** Maximum URL length; tools cannot have longer URLs. */
const mostUrl = 1000;

/** Without servers, the API is at the origin of the document (OpenAPI 3.1, 4.8.1.1). */
const ownServer: ApiServer = { url: '/', description: '', variables: [] };

/** Reads the `servers` of OpenAPI 3. Returns undefined if there are none. */
function readServers(value: unknown): ApiServer[] | undefined {
  const servers = listOf(value).flatMap((server): ApiServer[] => {
    const url = asText(field(server, 'url')).trim();
    if (url === '' || url.length > mostUrl) return [];
    const described = new Map(entriesOf(field(server, 'variables')));
    const variables = variableNames(url).map((name) => readVariable(name, described.get(name)));
    return [{ url, description: asText(field(server, 'description')), variables }];
  });
  return servers.length > 0 ? servers : undefined;
}

function variableNames(url: string): string[] {
  return [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
}

function readVariable(name: string, value: unknown): ServerVariable {
  const fallback = asText(field(value, 'default'));
  return {
    name,
    fallback: fallback === '' || fallback.length > mostUrl ? undefined : fallback,
    options: asTexts(field(value, 'enum')).filter((option) => option.length <= mostUrl),
    description: asText(field(value, 'description')),
  };
}

/** Reads `host`, `basePath`, and `schemes` of Swagger 2. Prefers https if there is a choice. */
function readSwaggerServers(root: JsonFields): ApiServer[] {
  const host = asText(root.host)
    .replace(/^[a-z]+:\/\//i, '')
    .replace(/(?<!\/)\/+$/, '');
  const base = asText(root.basePath).replace(/(?<!\/)\/+$/, '');
  const schemes = asTexts(root.schemes);
  const scheme = schemes.includes('http') && !schemes.includes('https') ? 'http' : 'https';
  const url = host === '' ? base || '/' : `${scheme}://${host}${base}`;
  return [{ url, description: '', variables: variableNames(url).map((name) => readVariable(name, undefined)) }];
}
