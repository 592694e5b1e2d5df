import type { Json, TestToolhost } from './toolhost/toolhost.ts';

/** Builds a tool that is valid unless `fields` change that. */
export function buildToolConfig(fields: Json = {}): Json {
  return {
    name: 'get_thing',
    description: 'Gets one thing, or all of them.',
    method: 'GET',
    url: 'https://api.example.com/v1/things',
    ...fields,
  };
}

/** Builds a configuration that is valid unless `fields` change that. */
export function buildServerConfig(fields: Json = {}): Json {
  return { name: 'Things', slug: 'things', tools: [buildToolConfig()], ...fields };
}

export const oauthConfig: Json = {
  authorization_url: 'https://login.example.com/authorize',
  token_url: 'https://login.example.com/token',
  client_id: 'client',
  client_secret: 'the-client-secret',
};

type Finding = { path: string; message: string };

/** Returns the findings of `checkMcpServer` about a configuration, each as "path: message". */
export async function checkConfiguration(
  toolhost: TestToolhost,
  config: Json,
): Promise<{ valid: boolean; problems: string[]; warnings: string[]; access: unknown }> {
  const { body, status, text } = await toolhost.rest('POST', '/check', { body: config });
  if (status !== 200) throw new Error(`not checked: ${status} ${text}`);
  const lines = (findings: unknown) => (findings as Finding[]).map(({ path, message }) => `${path}: ${message}`);
  return {
    valid: body.valid === true,
    problems: lines(body.problems),
    warnings: lines(body.warnings),
    access: body.access,
  };
}

/** Returns the problems of a configuration that has one tool with these fields. */
export async function findToolProblems(toolhost: TestToolhost, fields: Json, more: Json = {}): Promise<string[]> {
  return (await checkConfiguration(toolhost, buildServerConfig({ tools: [buildToolConfig(fields)], ...more })))
    .problems;
}
