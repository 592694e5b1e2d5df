import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * The folder of a person's settings for this program: below `XDG_CONFIG_HOME`, `APPDATA` on Windows, or `~/.config`,
 * also on macOS, where command lines keep their settings there.
 */
export function configFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, 'toolhost');
  if (platform === 'win32' && env.APPDATA) return join(env.APPDATA, 'toolhost');
  return join(env.HOME || homedir(), '.config', 'toolhost');
}
