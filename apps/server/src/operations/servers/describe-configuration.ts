import { authenticationSchema } from '@toolhost/tool-config/authentication';
import { fieldSchema } from '@toolhost/tool-config/input-schema';
import { loginSchema } from '@toolhost/tool-config/login';
import { oauthSchema } from '@toolhost/tool-config/oauth';
import { serverConfigSchema } from '@toolhost/tool-config/server-config';
import { variableSchema } from '@toolhost/tool-config/server-wide';
import { toolSchema } from '@toolhost/tool-config/tool';
import { viewSchema } from '@toolhost/tool-config/view';
import { z } from 'zod';
import { describeAsJsonSchema } from '../describe.ts';
import { operation } from '../operation.ts';

type Fields = { [key: string]: unknown };

/** Part of a configuration: the schema of its object, the part that contains it, and an example of the field. */
type ConfigurationPart = { subject: string; parent?: string; object: z.ZodType; example: unknown };

const listTasks = {
  name: 'list_tasks',
  description: 'List the tasks of a project, newest first',
  method: 'GET',
  url: '/projects/:project_id/tasks',
  input_schema: {
    project_id: { type: 'string', description: 'Id of the project' },
    status: { type: 'string', enum: ['todo', 'done'], optional: true },
  },
};

/** Parts of a configuration, by the name of their field. The reference pages show them too. */
export const configurationParts = {
  server: {
    subject: 'the complete configuration',
    object: serverConfigSchema,
    example: {
      name: 'Projects',
      slug: 'my-projects',
      base_url: 'https://api.example.com/v1',
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      tools: [listTasks],
    },
  },
  authentication: {
    subject: 'one credential',
    parent: 'server',
    object: authenticationSchema,
    example: { type: 'ApiKey', header: 'X-Api-Key', token: '{{API_KEY}}' },
  },
  oauth: {
    subject: 'the provider of a login',
    parent: 'server',
    object: oauthSchema,
    example: {
      authorization_url: 'https://id.example.com/authorize',
      token_url: 'https://id.example.com/token',
      client_id: 'id-of-the-application',
      client_secret: 'secret-of-the-application',
      scopes: ['tasks.read'],
      extra_params: { access_type: 'offline' },
    },
  },
  login: {
    subject: 'the people who may log in, and the values that they bring',
    parent: 'server',
    object: loginSchema,
    example: {
      allow: { members: true, domains: ['example.com'] },
      fields: [
        { name: 'API_TOKEN', label: 'API token', help: 'https://tasks.example.com/help/tokens' },
        { name: 'site', label: 'Site', secret: false, pattern: '[a-z0-9-]+' },
      ],
    },
  },
  variables: {
    subject: 'one variable',
    parent: 'server',
    object: variableSchema,
    example: { subdomain: { value: 'staging', description: 'Host of the customer', enum: ['staging', 'acme'] } },
  },
  tools: {
    subject: 'one tool',
    parent: 'server',
    object: toolSchema,
    example: [
      listTasks,
      {
        name: 'update_task',
        description: 'Change a task; only fields that are sent change',
        method: 'PATCH',
        url: 'https://api.example.com/v1/tasks?id=eq.:id',
        headers: { Prefer: 'return=representation' },
        input_schema: { id: { type: 'string' }, title: { type: 'string', optional: true } },
        response_transform: 'data.0',
      },
    ],
  },
  input_schema: {
    subject: 'one argument',
    parent: 'tools',
    object: fieldSchema,
    example: {
      id: { type: 'string', description: 'Id of the task' },
      labels: { type: 'array', items: { type: 'string' }, optional: true },
      picture: { type: 'string', content: 'base64', file_name: 'picture.png', optional: true },
    },
  },
  views: {
    subject: 'one view',
    parent: 'server',
    object: viewSchema,
    example: { reading: { title: 'Projects, reading only', tools: ['list_tasks'], read_only: true } },
  },
} satisfies { [part: string]: ConfigurationPart };

type PartName = keyof typeof configurationParts;
const partNames = Object.keys(configurationParts) as [PartName, ...PartName[]];

/** Returns the optional fields of a server or a tool that are not parts. Tool lists only name these fields. */
export function getRareFields(): [name: string, description: string | undefined][] {
  return [serverConfigSchema, toolSchema].flatMap(({ shape }) =>
    Object.entries(shape).flatMap(([name, field]): [string, string | undefined][] => {
      if (!(field instanceof z.ZodOptional) || name in configurationParts) return [];
      return [[name, field.description ?? (field.unwrap() as z.ZodType).description]];
    }),
  );
}

/** Returns the schema of a part. Nested parts are only referenced by name, so that every response is short. */
function getPartSchema(partName: PartName): Fields {
  const schema = removeReferences(describeAsJsonSchema(configurationParts[partName].object, 'input')) as {
    properties: Fields;
  };
  const fields = Object.entries(schema.properties).map(([name, field]): [string, unknown] => {
    // Each named credential has the fields of `authentication`.
    const nestedPart = (name === 'credentials' ? 'authentication' : name) as PartName;
    const { parent: parentPart }: ConfigurationPart = configurationParts[nestedPart] ?? {};
    if (parentPart !== partName) return [name, field];
    const { description } = field as { description?: string };
    return [name, { description: `${description} For its fields, request the part ${nestedPart}.` }];
  });
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** Removes recursive definitions. Fields of an argument may contain fields, but one level shows all their keywords. */
function removeReferences(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(removeReferences);
  const { $ref: _ref, $defs: _defs, propertyNames: _names, ...remainingKeywords } = schema as Fields;
  return Object.fromEntries(Object.entries(remainingKeywords).map(([key, value]) => [key, removeReferences(value)]));
}

const describeConfiguration = operation({
  name: 'describeConfiguration',
  summary: 'Explain all fields of one part of a configuration, with an example',
  description: `The other tools only name these fields.`,
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({
    part: z
      .enum(partNames)
      .default('server')
      .describe('server is the complete configuration; the others are fields of it or of a tool.'),
  }),
  output: z.object({
    part: z.enum(partNames),
    describes: z.string().describe('Subject of the schema, such as one tool.'),
    schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the part.'),
    example: z.unknown().describe('Example value of the field in a configuration.'),
  }),
  async run(_context, { part }) {
    const { subject: describes, example } = configurationParts[part];
    return { part, describes, schema: getPartSchema(part), example };
  },
});

export const configurationHelpOperations = { describeConfiguration };
