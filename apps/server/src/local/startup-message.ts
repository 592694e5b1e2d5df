import { resolve } from 'node:path';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { quoteShellWord } from '@toolhost/mcp-clients/literals';
import type { Config } from '../config.ts';
import { getDefaultDataDir } from '../data-folder.ts';
import { buildUrl, routes } from '../routes.ts';
import { programName } from '../version.ts';
import { exampleSlug, exampleToken } from './example.ts';

const defaultUrl = 'http://127.0.0.1:8080';

/** Returns the startup text: where the data is, and the commands to import an API and to call the example. */
export function formatGreeting(config: Config, baseUrl: string): string {
  const database = config.engine === 'sqlite' ? resolve(config.dataDir) : 'the PostgreSQL database of DATABASE_URL';
  const serviceSetting = baseUrl === defaultUrl ? '' : `TOOLHOST_URL=${quoteForShell(baseUrl)} `;
  const lines = [
    '',
    `  Dashboard      ${baseUrl}`,
    `  Data           ${database}`,
    '',
    '  Import your API:',
    '',
    `export TOOLHOST_API_KEY=$(${formatDatabaseSetting(config)}${programName} keys create --name me --scopes manage,call --quiet)`,
    `${serviceSetting}${programName} import https://api.example.com/openapi.json`,
    '',
  ];
  if (config.isInContainer)
    lines.push(
      '  Container      Anyone who reaches its port can sign in. Only publishing it on 127.0.0.1 keeps neighbors out.',
    );
  if (config.mode === 'local' && config.demo) {
    const url = buildUrl(baseUrl, routes.mcp, exampleSlug);
    lines.push(
      '  Try the example, or connect it to an agent:',
      '',
      `${serviceSetting}${programName} call ${exampleSlug} list_projects`,
      getClaudeCodeCommand({ name: exampleSlug, url, token: exampleToken }),
      '',
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Returns the setting with which a command finds the database of this service; empty for the default. */
export function formatDatabaseSetting(config: Config): string {
  // The URL contains a password, so only the variable is shown, which the reader has set.
  if (config.engine !== 'sqlite') return 'DATABASE_URL="$DATABASE_URL" ';
  return config.dataDir === getDefaultDataDir() ? '' : `DATA_DIR=${quoteForShell(resolve(config.dataDir))} `;
}

/** Quotes text for a POSIX shell if necessary. */
function quoteForShell(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : quoteShellWord(text);
}
