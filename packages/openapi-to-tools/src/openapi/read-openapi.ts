import { getField, isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import { References } from '../document/references.ts';
import type { ApiDescription, ApiOperation, ApiResponses, ApiServer, Finding, ServerVariable } from '../model.ts';
import { getFastApiSuffix } from './fast-api.ts';
import { readMediaTypes, readRequestBody, readSwaggerBody } from './read-body.ts';
import { type ReadContext, readParameters } from './read-parameters.ts';
import { type PathVariant, readRoutes } from './read-route.ts';
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
  const context: ReadContext = { references, isSwagger, addFinding: (finding) => findings.push(finding) };
  const info = root.info;
  const operations = toEntries(references.follow(root.paths).value).flatMap(([path, item]) =>
    readPath(path, item, root, context),
  );
  return {
    format: isSwagger ? 'Swagger' : 'OpenAPI',
    version: toText(root.openapi ?? root.swagger),
    title: toText(getField(info, 'title')),
    description: toText(getField(info, 'description')),
    tags: toList(root.tags).flatMap((tag) => {
      const name = toText(getField(tag, 'name'));
      return name === '' ? [] : [{ name, description: toText(getField(tag, 'description')) }];
    }),
    servers: isSwagger ? readSwaggerServers(root) : (readServers(root.servers) ?? [defaultServer]),
    operations: isFromFastApi(root, operations) ? markPublicOperations(operations) : operations,
    schemes: readSchemes(root, references),
    root,
    findings,
  };
}

/**
 * Returns true for a document that FastAPI generated, which declares `security` for every operation that needs it. In
 * most other documents that declare it for some operations, the others need the credential, too.
 */
function isFromFastApi(root: JsonFields, operations: readonly ApiOperation[]): boolean {
  const schemas = getField(getField(root, 'components'), 'schemas');
  return (
    getField(schemas, 'HTTPValidationError') !== undefined ||
    operations.some((operation) => operation.operationId?.endsWith(getFastApiSuffix(operation)))
  );
}

/** Marks operations without `security` as public if others declare theirs. If none does, the credential is unknown. */
function markPublicOperations(operations: readonly ApiOperation[]): ApiOperation[] {
  const isSecured = operations.some(({ security }) => security.some(({ size }) => size > 0));
  return operations.map((operation) =>
    isSecured && operation.security.length === 0 ? { ...operation, security: [new Map()] } : operation,
  );
}

function readPath(path: string, value: unknown, root: JsonFields, context: ReadContext): ApiOperation[] {
  if (path.startsWith('x-')) return [];
  const at = `paths.${path}`;
  const { value: item, problem } = context.references.follow(value);
  if (problem !== undefined || !isFields(item)) {
    context.addFinding({ at, message: problem ?? 'is not an object of operations; left out' });
    return [];
  }
  const named = toEntries(item).filter(([name]) => methods.includes(name.toLowerCase()));
  const additional = toEntries(item.additionalOperations);
  return [...named, ...additional].flatMap(([method, operation]) => {
    const { value: resolved, problem: operationProblem } = context.references.follow(operation);
    if (isFields(resolved)) return readOperation({ path, method, item, operation: resolved }, root, context);
    context.addFinding({ at: `${at}.${method}`, message: operationProblem ?? 'is not an operation; left out' });
    return [];
  });
}

type OperationSource = { path: string; method: string; item: JsonFields; operation: JsonFields };

function readOperation(
  { path, method, item, operation }: OperationSource,
  root: JsonFields,
  context: ReadContext,
): ApiOperation[] {
  const at = `paths.${path}.${method}`;
  const parameters = readParameters(
    [
      { at: `paths.${path}.parameters`, value: item.parameters },
      { at: `${at}.parameters`, value: operation.parameters },
    ],
    context,
  );
  const body = context.isSwagger
    ? readSwaggerBody(parameters, readMediaTypes(operation, root, 'consumes'))
    : readRequestBody(operation.requestBody, `${at}.requestBody`, context);
  const parsed = readRoutes(path, parameters.inputs);
  const fullVariant: PathVariant = { path, route: path, inputs: parameters.inputs, omitted: [] };
  // A shorter variant may also be a path of its own in the document.
  const isUndeclared = ({ path: otherPath, omitted }: PathVariant) =>
    omitted.length === 0 || !isFields(getField(getField(root.paths, otherPath), method.toLowerCase()));
  const id = toText(operation.operationId);
  const routes = 'routes' in parsed ? parsed.routes.filter(isUndeclared) : [fullVariant];
  return routes.map(({ path: variantPath, route, inputs, omitted }) => ({
    at,
    method: method.toUpperCase(),
    path: variantPath,
    route,
    operationId: (omitted.length === 0 || id === '' ? id : `${id}_without_${omitted.join('_')}`) || undefined,
    tags: toTexts(operation.tags),
    summary: toText(operation.summary) || toText(item.summary),
    description: toText(operation.description) || toText(item.description),
    isDeprecated: operation.deprecated === true,
    inputs,
    body,
    security: readRequirements(operation.security) ?? readRequirements(root.security) ?? [],
    servers: context.isSwagger ? undefined : (readServers(operation.servers) ?? readServers(item.servers)),
    responses: readResponses(operation, root, context),
    unsupportedReason: parameters.unsupportedReason ?? ('problem' in parsed ? parsed.problem : undefined),
  }));
}

/** Reads media types, headers, and the schema of the successful responses. */
function readResponses(operation: JsonFields, root: JsonFields, context: ReadContext): ApiResponses {
  const mediaTypes = new Set<string>();
  const headers = new Set<string>();
  const statuses: string[] = [];
  let schema: unknown;
  for (const [status, value] of toEntries(operation.responses)) {
    const response = context.references.follow(value).value;
    if (!isFields(response)) continue;
    statuses.push(status);
    if (!/^(2|3|default)/i.test(status)) continue;
    for (const [name] of toEntries(response.headers)) headers.add(name);
    if (!/^(2|default)/i.test(status)) continue;
    for (const [type] of toEntries(response.content)) mediaTypes.add(type.trim());
    const contents = toEntries(response.content).filter(([type]) => /\bjson\b|\*\/\*/.test(type));
    schema ??= context.isSwagger ? response.schema : getField(contents[0]?.[1], 'schema');
  }
  if (context.isSwagger) for (const type of readMediaTypes(operation, root, 'produces')) mediaTypes.add(type.trim());
  const isRedirect =
    statuses.some((status) => /^3/.test(status)) && !statuses.some((status) => /^(2|default)/i.test(status));
  const fields = listFieldNames(schema, context, 1);
  return { mediaTypes: [...mediaTypes], headers: [...headers], isRedirect, fields, schema };
}

const maxFields = 60;

/** Returns the field names of an object, and of nested objects down to `levels` levels deep. */
function listFieldNames(schema: unknown, context: ReadContext, levels: number): string[] {
  const { value } = context.references.follow(schema);
  const schemas = [value, ...toList(getField(value, 'allOf')).map((schema) => context.references.follow(schema).value)];
  const properties = schemas.flatMap((schema) => toEntries(getField(schema, 'properties'))).slice(0, maxFields);
  return properties.flatMap(([name, property]) => {
    const inner = levels > 0 ? listFieldNames(property, context, levels - 1) : [];
    return [name, ...inner.map((path) => `${name}.${path}`)];
  });
}

/** Maximum URL length; tools cannot have longer URLs. */
const maxUrlLength = 1000;

/** Without servers, the API is at the origin of the document (OpenAPI 3.1, 4.8.1.1). */
const defaultServer: ApiServer = { url: '/', description: '', variables: [] };

/** Reads the `servers` of OpenAPI 3. Returns undefined if there are none. */
function readServers(value: unknown): ApiServer[] | undefined {
  const servers = toList(value).flatMap((server): ApiServer[] => {
    const url = toText(getField(server, 'url')).trim();
    if (url === '' || url.length > maxUrlLength) return [];
    const described = new Map(toEntries(getField(server, 'variables')));
    const variables = findVariableNames(url).map((name) => readVariable(name, described.get(name)));
    return [{ url, description: toText(getField(server, 'description')), variables }];
  });
  return servers.length > 0 ? servers : undefined;
}

function findVariableNames(url: string): string[] {
  return [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
}

function readVariable(name: string, value: unknown): ServerVariable {
  const fallback = toText(getField(value, 'default'));
  return {
    name,
    fallback: fallback === '' || fallback.length > maxUrlLength ? undefined : fallback,
    options: toTexts(getField(value, 'enum')).filter((option) => option.length <= maxUrlLength),
    description: toText(getField(value, 'description')),
  };
}

/** Reads `host`, `basePath`, and `schemes` of Swagger 2. Prefers https if there is a choice. */
function readSwaggerServers(root: JsonFields): ApiServer[] {
  const host = toText(root.host)
    .replace(/^[a-z]+:\/\//i, '')
    .replace(/(?<!\/)\/+$/, '');
  const base = toText(root.basePath).replace(/(?<!\/)\/+$/, '');
  const schemes = toTexts(root.schemes);
  const scheme = schemes.includes('http') && !schemes.includes('https') ? 'http' : 'https';
  const url = host === '' ? base || '/' : `${scheme}://${host}${base}`;
  return [{ url, description: '', variables: findVariableNames(url).map((name) => readVariable(name, undefined)) }];
}
