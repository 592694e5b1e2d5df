import { resolve } from 'node:path';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { quoteShellWord } from '@toolhost/mcp-clients/literals';
import type { Config } from '../config.ts';
import { getDefaultDataDir } from '../data-folder.ts';
import { exampleSlug, exampleToken } from '../example-server.ts';
import { buildUrl, routes } from '../routes.ts';
import { programName } from '../version.ts';

const defaultUrl = 'http://127.0.0.1:8080';

/**
 * Returns the startup text: where the data is, and an introduction, by default the commands to import an API and to call
 * the example.
 */
export function formatGreeting(
  config: Config,
  baseUrl: string,
  introduction = formatIntroduction(config, baseUrl),
): string {
  const database = config.engine === 'sqlite' ? resolve(config.dataDir) : 'the PostgreSQL database of DATABASE_URL';
  const container = config.isInContainer
    ? '\n  Container      Only publishing its port on 127.0.0.1 keeps neighbors out.'
    : '';
  return `
  Dashboard      ${baseUrl}
  Data           ${database}${container}

${introduction}

`;
}

function formatIntroduction(config: Config, baseUrl: string): string {
  const settings = formatCommandSettings(config, baseUrl);
  const lines = [
    '  Import your API:',
    '',
    `export TOOLHOST_API_KEY=$(${settings.database}${programName} keys create --name cli --scopes manage,call --quiet)`,
    `${settings.service}${programName} import https://api.example.com/openapi.json`,
    ...(config.mode === 'local' && !config.isInContainer
      ? [
          '',
          '  An API on this machine: stop the service with Ctrl-C, then allow and import it:',
          '',
          `${settings.database}${programName} import http://127.0.0.1:8000/openapi.json --serve`,
        ]
      : []),
  ];
  if (config.mode !== 'local' || !config.demo) return lines.join('\n');
  const url = buildUrl(baseUrl, routes.mcp, exampleSlug);
  return [
    ...lines,
    '',
    '  Try the example, or connect it to an agent:',
    '',
    `${settings.service}${programName} call ${exampleSlug} list_projects`,
    getClaudeCodeCommand({ name: exampleSlug, url, token: exampleToken }),
  ].join('\n');
}

/** Environment of commands that open the database, and of commands that use the service; empty for the defaults. */
export type CommandSettings = { database: string; service: string };

export function formatCommandSettings(config: Config, baseUrl: string): CommandSettings {
  const dataDir = config.dataDir === getDefaultDataDir() ? '' : `DATA_DIR=${quoteForShell(resolve(config.dataDir))} `;
  return {
    // The URL contains a password, so only the variable is shown, which the reader has set.
    database: config.engine === 'sqlite' ? dataDir : 'DATABASE_URL="$DATABASE_URL" ',
    service: baseUrl === defaultUrl ? '' : `TOOLHOST_URL=${quoteForShell(baseUrl)} `,
  };
}

/** Quotes text for a POSIX shell if necessary. */
function quoteForShell(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : quoteShellWord(text);
}
