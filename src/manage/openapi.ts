import type { z } from 'zod';
import { keyHeader } from '../domain/credentials/credential.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { type ErrorKind, errorKinds } from '../errors.ts';
import { componentSchemaOf } from '../operations/describe.ts';
import type { Operation } from '../operations/operation.ts';
import { problemsShape } from '../operations/shapes.ts';
import { apiPath } from '../routes.ts';
import { sessionCookie } from './actors.ts';

type JsonObject = { [key: string]: unknown };

/** Media type of a response that is streamed while it is generated, with one JSON object per line. */
export const linesType = 'application/jsonl';

/** Tags by the nouns of a path. The last noun with a tag decides. */
const tagsByNoun: Readonly<Record<string, string>> = {
  servers: 'Servers',
  'deleted-servers': 'Servers',
  search: 'Servers',
  needs: 'Servers',
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
  audit: 'Audit',
  webhooks: 'Notifications',
  notices: 'Notifications',
  notifications: 'Notifications',
  session: 'Workspaces',
  workspace: 'Workspaces',
  workspaces: 'Workspaces',
  'workspace.json': 'Workspaces',
  members: 'Members',
  invitations: 'Members',
  remains: 'Members',
};

/** Returns the tags of an operation; none if its path has no known noun. */
function tagsOf(op: Operation): string[] {
  const tags = op.route.path.split('/').flatMap((noun) => tagsByNoun[noun] ?? []);
  return tags.slice(-1);
}

/** Generates the OpenAPI 3.1 document of the REST API from the operations. */
export async function openApiDocument(
  operations: readonly Operation[],
  baseUrl: string,
  version: string,
): Promise<JsonObject> {
  const paths: Record<string, JsonObject> = {};
  const schemas: JsonObject = {};
  schemas.Problem = problemSchema(schemas);
  for (const op of operations) {
    const path = paths[op.route.path] ?? {};
    path[op.route.method.toLowerCase()] = describe(op, schemas);
    paths[op.route.path] = path;
    // The schemas of all operations take more time than calls should wait.
    await nextTurn();
  }
  const bearer = { type: 'http', scheme: 'bearer', description: 'API key, thk_…, or access token of a login.' };
  const session = { type: 'apiKey', in: 'cookie', name: sessionCookie(baseUrl).name };
  return {
    openapi: '3.1.0',
    info: { title: 'Toolhost', version, description: 'Manage hosted MCP servers, their secrets, API keys, and calls.' },
    servers: [{ url: baseUrl + apiPath }],
    security: [{ bearer: [] }, { apiKey: [] }, { session: [] }],
    tags: [...new Set(operations.flatMap(tagsOf))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer,
        apiKey: { type: 'apiKey', in: 'header', name: keyHeader, description: 'API key (thk_…).' },
        session: { ...session, description: 'Session of a person in the dashboard.' },
      },
      headers,
      responses: Object.fromEntries([...answerable.map((kind) => [kind, errorResponse(kind)]), ['default', anyError]]),
      schemas,
    },
  };
}

const textHeader = (description: string) => ({ description, schema: { type: 'string' } });
const headers = {
  'X-Request-Id': textHeader('ID of the request. Errors contain it as request_id.'),
  ETag: textHeader('Version of the server, for If-Match.'),
  'Retry-After': { description: 'Seconds to wait before retrying.', schema: { type: 'integer' } },
  'WWW-Authenticate': textHeader('How to authenticate (RFC 9728).'),
  Allow: textHeader('Methods that the path allows.'),
  'Content-Disposition': textHeader('Name of the file.'),
};
type Header = keyof typeof headers;

function headersNamed(...names: Header[]): JsonObject {
  const all: Header[] = ['X-Request-Id', ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Errors that any operation may return. */
const answerable = [
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

const headersOfErrors: Partial<Record<ErrorKind, Header>> = {
  unauthenticated: 'WWW-Authenticate',
  methodNotAllowed: 'Allow',
  tooMany: 'Retry-After',
  unavailable: 'Retry-After',
};

const problemContent = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
const anyError = { description: 'Any other error', headers: headersNamed(), content: problemContent };

function errorResponse(kind: ErrorKind): JsonObject {
  const header = headersOfErrors[kind];
  return {
    description: errorKinds[kind].title,
    headers: headersNamed(...(header ? [header] : [])),
    content: problemContent,
  };
}

/** Returns the schema of an error (RFC 9457). */
function problemSchema(schemas: JsonObject): JsonObject {
  return {
    type: 'object',
    description: 'RFC 9457 problem details.',
    properties: {
      type: { type: 'string' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: Object.values(errorKinds).map(({ code }) => code) },
      detail: { type: 'string', description: 'Explanation of the error, and how to resolve it.' },
      problems: componentSchemaOf(problemsShape, 'output', schemas),
      request_id: { type: 'string' },
    },
    required: ['type', 'title', 'status', 'code', 'detail', 'request_id'],
  };
}

function describe(op: Operation, schemas: JsonObject): JsonObject {
  const input = componentSchemaOf(op.input, 'input', schemas);
  const { properties, required = [] } = resolved(input, schemas) as {
    properties: Record<string, JsonObject>;
    required?: string[];
  };
  const inPath = [...op.route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  const rest = Object.entries(properties).filter(([name]) => !inPath.includes(name));
  const hasBody = op.route.method !== 'GET' && op.route.method !== 'DELETE' && rest.length > 0;
  const parameter = (name: string, location: string) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    schema: properties[name],
  });
  const body = {
    ...input,
    properties: Object.fromEntries(rest),
    required: required.filter((name) => !inPath.includes(name)),
  };
  return {
    operationId: op.name,
    summary: op.summary,
    ...(op.description !== undefined && { description: op.description }),
    tags: tagsOf(op),
    'x-scope': op.scope,
    // Only a dashboard session has the role of a person.
    ...(op.people && { security: [{ session: [] }] }),
    parameters: [
      ...inPath.map((name) => parameter(name, 'path')),
      ...(hasBody ? [] : rest.map(([name]) => parameter(name, 'query'))),
      ...('expected_version' in properties ? [ifMatch] : []),
    ],
    ...(hasBody && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: '$ref' in input ? input : body } },
      },
    }),
    responses: {
      [successStatus(op)]: successResponse(op, schemas),
      ...Object.fromEntries(
        answerable.map((kind) => [errorKinds[kind].status, { $ref: `#/components/responses/${kind}` }]),
      ),
      default: { $ref: '#/components/responses/default' },
    },
  };
}

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'ETag of the version that the change is based on, such as "3". If the server has another version, the request fails with a conflict.',
  schema: { type: 'string' },
};

function successResponse(op: Operation, schemas: JsonObject): JsonObject {
  const { file } = op;
  if (file) {
    const schema = file.mediaType === 'application/json' ? { type: 'object' } : { type: 'string' };
    const content = { [file.mediaType]: { schema } };
    return { description: 'Success', headers: headersNamed('Content-Disposition'), content };
  }
  const output = componentSchemaOf(op.output, 'output', schemas);
  const shape = op.output.shape as Record<string, z.ZodType>;
  return {
    description: 'Success',
    headers: headersNamed(...('server' in shape ? (['ETag'] as const) : [])),
    content: {
      'application/json': { schema: output },
      ...(op.asksModel && { [linesType]: { schema: { type: 'string' } } }),
    },
  };
}

/** Returns a schema itself, or the named schema that it refers to. */
function resolved(schema: JsonObject, schemas: JsonObject): JsonObject {
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;
  return name === undefined ? schema : (schemas[name] as JsonObject);
}

/** Returns the status of a successful response: 201 for operations that create, otherwise 200. */
export function successStatus(op: Operation): 200 | 201 {
  return op.route.method === 'POST' && op.name.startsWith('create') ? 201 : 200;
}
