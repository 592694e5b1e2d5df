import { resolve } from 'node:path';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { quoteShellWord } from '@toolhost/mcp-clients/literals';
import type { Config } from '../config.ts';
import { getDefaultDataDir } from '../data-folder.ts';
import { buildUrl, routes } from '../routes.ts';
import { programName } from '../version.ts';
import { exampleSlug, exampleToken } from './example.ts';

const defaultUrl = 'http://127.0.0.1:8080';

/** Returns the startup text with the URLs and commands for a first call. */
export function formatGreeting(config: Config, baseUrl: string): string {
  const managementUrl = buildUrl(baseUrl, routes.mcp, config.managementSlug);
  const database = config.engine === 'sqlite' ? resolve(config.dataDir) : 'the PostgreSQL database of DATABASE_URL';
  const lines = [
    '',
    `  Dashboard      ${baseUrl}`,
    `  Management     ${managementUrl}`,
    `  Data           ${database}`,
  ];
  if (config.isInContainer)
    lines.push(
      '  Container      Anyone who reaches its port can sign in. Only publishing it on 127.0.0.1 keeps neighbors out.',
    );
  if (config.mode === 'local' && config.demo) {
    const url = buildUrl(baseUrl, routes.mcp, exampleSlug);
    const exampleCall = JSON.stringify({
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
      `curl -s ${url} -H 'Authorization: Bearer ${exampleToken}' -H 'Content-Type: application/json' -d '${exampleCall}'`,
      '',
      '  Connect an agent:',
      '',
      getClaudeCodeCommand({ name: exampleSlug, url, token: exampleToken }),
    );
  }
  lines.push(
    '',
    '  Create a key to manage and call servers:',
    '',
    `${formatSettings(config, baseUrl)}${programName} keys create --name me --scopes manage,call`,
    '',
    '',
  );
  return lines.join('\n');
}

/** Returns the settings that a command needs to find this service and its database, except those at their defaults. */
function formatSettings(config: Config, baseUrl: string): string {
  const settings = [
    // The URL contains a password, so only the variable is shown, which the reader has set.
    ...(config.engine === 'sqlite' ? [] : ['DATABASE_URL="$DATABASE_URL"']),
    ...(config.engine === 'sqlite' && config.dataDir !== getDefaultDataDir()
      ? [`DATA_DIR=${quoteForShell(resolve(config.dataDir))}`]
      : []),
    ...(baseUrl === defaultUrl ? [] : [`TOOLHOST_URL=${quoteForShell(baseUrl)}`]),
  ];
  return settings.map((setting) => `${setting} `).join('');
}

/** Quotes text for a POSIX shell if necessary. */
function quoteForShell(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : quoteShellWord(text);
}
