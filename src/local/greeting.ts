import type { Config } from '../config.ts';
import { routes, urlOf } from '../routes.ts';
import { exampleSlug, exampleToken } from './example.ts';

/** What a person at the terminal needs for the first call. */
export function greeting(config: Config, baseUrl: string): string {
  const manage = urlOf(baseUrl, routes.mcp, config.managementSlug);
  const lines = ['', `  Toolhost       ${baseUrl}`, `  Management     ${manage}`];
  if (config.mode === 'local' && config.demo) {
    const url = urlOf(baseUrl, routes.mcp, exampleSlug);
    const call = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'list_projects', arguments: {} },
    });
    lines.push(
      `  Example        ${url}`,
      '',
      '  A first tool call:',
      '',
      `curl -s ${url} -H 'Authorization: Bearer ${exampleToken}' -H 'Content-Type: application/json' -d '${call}'`,
      '',
      '  The same for an agent:',
      '',
      `claude mcp add --transport http ${exampleSlug} ${url} --header "Authorization: Bearer ${exampleToken}"`,
    );
  }
  lines.push(
    '',
    '  A key to manage servers and call them:',
    '',
    'bin/toolhost keys create --name me --scopes manage,call',
    '',
    '',
  );
  return lines.join('\n');
}
