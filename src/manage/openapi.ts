import { nextTurn } from '../domain/work/next-turn.ts';
import { errorKinds } from '../errors.ts';
import { inputSchemaOf, outputSchemaOf } from '../operations/describe.ts';
import type { Operation } from '../operations/operation.ts';

type JsonObject = { [key: string]: unknown };

/** The OpenAPI 3.1 document of the REST API, read from the operations. */
export async function openApiDocument(
  operations: readonly Operation[],
  baseUrl: string,
  version: string,
): Promise<JsonObject> {
  const paths: Record<string, JsonObject> = {};
  for (const op of operations) {
    const path = paths[op.route.path] ?? {};
    path[op.route.method.toLowerCase()] = describe(op);
    paths[op.route.path] = path;
    // The schemas of all operations take more time than calls should wait.
    await nextTurn();
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Toolhost', version, description: 'Manage hosted MCP servers, their secrets, API keys and calls.' },
    servers: [{ url: `${baseUrl}/api/v1` }],
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key, thk_…' } },
      schemas: { Problem: problem },
    },
  };
}

const problem = {
  type: 'object',
  description: 'RFC 9457 problem details.',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    problems: {
      type: 'array',
      items: { type: 'object', properties: { path: { type: 'string' }, message: { type: 'string' } } },
    },
    request_id: { type: 'string' },
  },
};

function describe(op: Operation): JsonObject {
  const input = inputSchemaOf(op);
  const properties = input.properties as Record<string, JsonObject>;
  const required = (input.required ?? []) as string[];
  const inPath = [...op.route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  const rest = Object.entries(properties).filter(([name]) => !inPath.includes(name));
  const hasBody = op.route.method !== 'GET' && op.route.method !== 'DELETE' && rest.length > 0;
  const parameter = (name: string, location: string) => ({
    name,
    in: location,
    required: location === 'path' || required.includes(name),
    schema: properties[name],
  });
  return {
    operationId: op.name,
    summary: op.summary,
    ...(op.description !== undefined && { description: op.description }),
    'x-scope': op.scope,
    parameters: [
      ...inPath.map((name) => parameter(name, 'path')),
      ...(hasBody ? [] : rest.map(([name]) => parameter(name, 'query'))),
    ],
    ...(hasBody && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              ...input,
              properties: Object.fromEntries(rest),
              required: required.filter((name) => !inPath.includes(name)),
            },
          },
        },
      },
    }),
    responses: {
      [successStatus(op)]: { description: 'Done', content: contentOf(op) },
      ...Object.fromEntries(
        (['invalid', 'unauthenticated', 'forbidden', 'notFound', 'conflict', 'unavailable'] as const).map((kind) => [
          errorKinds[kind].status,
          {
            description: errorKinds[kind].title,
            content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
          },
        ]),
      ),
    },
  };
}

function contentOf(op: Operation): JsonObject {
  return op.file
    ? { [op.file.mediaType]: { schema: { type: 'string' } } }
    : { 'application/json': { schema: outputSchemaOf(op) } };
}

/** Status of a successful answer: 201 for operations that create, else 200. */
export function successStatus(op: Operation): 200 | 201 {
  return op.route.method === 'POST' && op.name.startsWith('create') ? 201 : 200;
}
