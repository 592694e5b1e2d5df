import type { Json, TestToolhost } from './toolhost/toolhost.ts';

/** Builds a tool that is valid unless `fields` change that. */
export function toolWith(fields: Json = {}): Json {
  return {
    name: 'get_thing',
    description: 'Gets one thing, or all of them.',
    method: 'GET',
    url: 'https://api.example.com/v1/things',
    ...fields,
  };
}

/** Builds a configuration that is valid unless `fields` change that. */
export function configWith(fields: Json = {}): Json {
  return { name: 'Things', slug: 'things', tools: [toolWith()], ...fields };
}

export const oauth: Json = {
  authorization_url: 'https://login.example.com/authorize',
  token_url: 'https://login.example.com/token',
  client_id: 'client',
  client_secret: 'the-client-secret',
};

type Remark = { path: string; message: string };

/** Returns the findings of `checkMcpServer` about a configuration, each as "path: message". */
export async function check(
  toolhost: TestToolhost,
  config: Json,
): Promise<{ valid: boolean; problems: string[]; warnings: string[]; access: unknown }> {
  const { body, status, text } = await toolhost.rest('POST', '/check', { body: config });
  if (status !== 200) throw new Error(`not checked: ${status} ${text}`);
  const lines = (remarks: unknown) => (remarks as Remark[]).map(({ path, message }) => `${path}: ${message}`);
  return {
    valid: body.valid === true,
    problems: lines(body.problems),
    warnings: lines(body.warnings),
    access: body.access,
  };
}

/** Returns the problems of a configuration that has one tool with these fields. */
export async function toolProblems(toolhost: TestToolhost, fields: Json, more: Json = {}): Promise<string[]> {
  return (await check(toolhost, configWith({ tools: [toolWith(fields)], ...more }))).problems;
}
