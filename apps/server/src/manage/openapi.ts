import { apiKeyHeader } from '@toolhost/credentials/credential';
import { type ErrorKind, errorKinds } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import type { z } from 'zod';
import { toComponentSchema } from '../operations/describe.ts';
import type { Operation } from '../operations/operation.ts';
import { problemsShape } from '../operations/shapes.ts';
import { apiPath } from '../routes.ts';
import { getSessionCookie } from './actors.ts';

type JsonObject = { [key: string]: unknown };

/** Media type of a response that is streamed while it is generated, with one JSON object per line. */
export const linesType = 'application/jsonl';

/** Tag of an operation by the last segment of its path that is listed here. */
const tagsBySegment: Readonly<Record<string, string>> = {
  servers: 'Servers',
  'deleted-servers': 'Servers',
  search: 'Servers',
  'pending-actions': 'Servers',
  configuration: 'Servers',
  check: 'Servers',
  tools: 'Tools',
  import: 'Imports',
  versions: 'Versions',
  secrets: 'Secrets',
  calls: 'Calls',
  'calls.csv': 'Calls',
  capture: 'Calls',
  activity: 'Statistics',
  statistics: 'Statistics',
  usage: 'Statistics',
  'usage.csv': 'Statistics',
  playground: 'Models',
  models: 'Models',
  limits: 'Limits',
  quotas: 'Limits',
  'connection-check': 'Connections',
  'login-check': 'Connections',
  keys: 'Keys',
  grants: 'Logins',
  'own-values': 'Logins',
  audit: 'Audit',
  webhooks: 'Notifications',
  notifications: 'Notifications',
  'notification-settings': 'Notifications',
  session: 'Workspaces',
  workspace: 'Workspaces',
  workspaces: 'Workspaces',
  'workspace.json': 'Workspaces',
  members: 'Members',
  invitations: 'Members',
  'member-access': 'Members',
  'role-groups': 'Members',
};

/** Returns the tag of an operation; empty if its path has no listed segment. */
function getTags(op: Operation): string[] {
  const tags = op.route.path.split('/').flatMap((segment) => tagsBySegment[segment] ?? []);
  return tags.slice(-1);
}

/** Generates the OpenAPI 3.1 document of the REST API from the operations. */
export async function generateOpenApiDocument(
  operations: readonly Operation[],
  baseUrl: string,
  version: string,
): Promise<JsonObject> {
  const paths: Record<string, JsonObject> = {};
  const schemas: JsonObject = {};
  schemas.Problem = createProblemSchema(schemas);
  for (const op of operations) {
    const path = paths[op.route.path] ?? {};
    path[op.route.method.toLowerCase()] = describeOperation(op, schemas);
    paths[op.route.path] = path;
    // The schemas of all operations take more time than calls should wait.
    await yieldToEventLoop();
  }
  const bearer = { type: 'http', scheme: 'bearer', description: 'API key, thk_…, or access token of a login.' };
  const session = { type: 'apiKey', in: 'cookie', name: getSessionCookie(baseUrl).name };
  return {
    openapi: '3.1.0',
    info: { title: 'Toolhost', version, description: 'Manage hosted MCP servers, their secrets, API keys, and calls.' },
    servers: [{ url: baseUrl + apiPath }],
    security: [{ bearer: [] }, { apiKey: [] }, { session: [] }],
    tags: [...new Set(operations.flatMap(getTags))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer,
        apiKey: { type: 'apiKey', in: 'header', name: apiKeyHeader, description: 'API key (thk_…).' },
        session: { ...session, description: 'Session of a person in the dashboard.' },
      },
      headers,
      responses: Object.fromEntries([
        ...possibleErrors.map((kind) => [kind, describeErrorResponse(kind)]),
        ['default', otherErrorResponse],
      ]),
      schemas,
    },
  };
}

const createTextHeader = (description: string) => ({ description, schema: { type: 'string' } });
const headers = {
  'X-Request-Id': createTextHeader('ID of the request. Errors contain it as request_id.'),
  ETag: createTextHeader('Version of the server, for If-Match.'),
  'Retry-After': { description: 'Seconds to wait before retrying.', schema: { type: 'integer' } },
  'WWW-Authenticate': createTextHeader('How to authenticate (RFC 9728).'),
  Allow: createTextHeader('Methods that the path allows.'),
  'Content-Disposition': createTextHeader('Name of the file.'),
};
type Header = keyof typeof headers;

function toHeaderReferences(...names: Header[]): JsonObject {
  const headerNames: Header[] = ['X-Request-Id', ...names];
  return Object.fromEntries(headerNames.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Errors that any operation may return. */
const possibleErrors = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'notFound',
  'methodNotAllowed',
  'conflict',
  'tooLarge',
  'unsupported',
  'tooMany',
  'internal',
  'unavailable',
] as const satisfies ErrorKind[];

const headerByError: Partial<Record<ErrorKind, Header>> = {
  unauthenticated: 'WWW-Authenticate',
  methodNotAllowed: 'Allow',
  tooMany: 'Retry-After',
  unavailable: 'Retry-After',
};

const problemContent = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
const otherErrorResponse = { description: 'Any other error', headers: toHeaderReferences(), content: problemContent };

function describeErrorResponse(kind: ErrorKind): JsonObject {
  const header = headerByError[kind];
  return {
    description: errorKinds[kind].title,
    headers: toHeaderReferences(...(header ? [header] : [])),
    content: problemContent,
  };
}

/** Returns the schema of an error (RFC 9457). */
function createProblemSchema(schemas: JsonObject): JsonObject {
  return {
    type: 'object',
    description: 'RFC 9457 problem details.',
    properties: {
      type: { type: 'string' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: Object.values(errorKinds).map(({ code }) => code) },
      detail: { type: 'string', description: 'Explanation of the error, and how to resolve it.' },
      problems: toComponentSchema(problemsShape, 'output', schemas),
      request_id: { type: 'string' },
    },
    required: ['type', 'title', 'status', 'code', 'detail', 'request_id'],
  };
}

function describeOperation(op: Operation, schemas: JsonObject): JsonObject {
  const input = toComponentSchema(op.input, 'input', schemas);
  const { properties, required = [] } = resolveReference(input, schemas) as {
    properties: Record<string, JsonObject>;
    required?: string[];
  };
  const pathParameters = [...op.route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  const otherParameters = Object.entries(properties).filter(([name]) => !pathParameters.includes(name));
  const hasBody = op.route.method !== 'GET' && op.route.method !== 'DELETE' && otherParameters.length > 0;
  const describeParameter = (name: string, location: string) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    schema: properties[name],
  });
  const body = {
    ...input,
    properties: Object.fromEntries(otherParameters),
    required: required.filter((name) => !pathParameters.includes(name)),
  };
  return {
    operationId: op.name,
    summary: op.summary,
    ...(op.description !== undefined && { description: op.description }),
    tags: getTags(op),
    'x-scope': op.scope,
    // Only a dashboard session has the role of a person.
    ...(op.dashboardRole && { security: [{ session: [] }] }),
    parameters: [
      ...pathParameters.map((name) => describeParameter(name, 'path')),
      ...(hasBody ? [] : otherParameters.map(([name]) => describeParameter(name, 'query'))),
      ...('expected_version' in properties ? [ifMatchParameter] : []),
    ],
    ...(hasBody && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: '$ref' in input ? input : body } },
      },
    }),
    responses: {
      [getSuccessStatus(op)]: describeSuccessResponse(op, schemas),
      ...Object.fromEntries(
        possibleErrors.map((kind) => [errorKinds[kind].status, { $ref: `#/components/responses/${kind}` }]),
      ),
      default: { $ref: '#/components/responses/default' },
    },
  };
}

const ifMatchParameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'ETag of the version that the change is based on, such as "3". If the server has another version, the request fails with a conflict.',
  schema: { type: 'string' },
};

function describeSuccessResponse(op: Operation, schemas: JsonObject): JsonObject {
  const { file } = op;
  if (file) {
    const schema = file.mediaType === 'application/json' ? { type: 'object' } : { type: 'string' };
    const content = { [file.mediaType]: { schema } };
    return { description: 'Success', headers: toHeaderReferences('Content-Disposition'), content };
  }
  const output = toComponentSchema(op.output, 'output', schemas);
  const shape = op.output.shape as Record<string, z.ZodType>;
  return {
    description: 'Success',
    headers: toHeaderReferences(...('server' in shape ? (['ETag'] as const) : [])),
    content: {
      'application/json': { schema: output },
      ...(op.callsModel && { [linesType]: { schema: { type: 'string' } } }),
    },
  };
}

/** Returns a schema itself, or the named schema that it refers to. */
function resolveReference(schema: JsonObject, schemas: JsonObject): JsonObject {
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;
  return name === undefined ? schema : (schemas[name] as JsonObject);
}

/** Returns the status of a successful response: 201 for operations that create, otherwise 200. */
export function getSuccessStatus(op: Operation): 200 | 201 {
  return op.route.method === 'POST' && op.name.startsWith('create') ? 201 : 200;
}
