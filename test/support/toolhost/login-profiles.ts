import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestFolder } from './command-world.ts';
import { logInWithCommand } from './login-command.ts';
import { runToolhostCommand } from './toolhost-command.ts';

type Tokens = { url: string; client_id: string; access_token: string; refresh_token: string };
type Person = { XDG_CONFIG_HOME: string };

/** Creates people whose logins at a service are stored in folders, which are removed after the tests of the suite. */
export function createLoginProfiles(url: string) {
  const folder = createTestFolder();
  let personCount = 0;
  /** Returns the environment of a person who has never used the command line. */
  const newPerson = (): Person => ({ XDG_CONFIG_HOME: join(folder, `person-${++personCount}`) });
  const getConfigFolder = (env: Person) => join(env.XDG_CONFIG_HOME, 'toolhost');
  return {
    folder,
    newPerson,
    getConfigFolder,
    readCredentials(env: Person) {
      const text = readFileSync(join(getConfigFolder(env), 'credentials.json'), 'utf8');
      return JSON.parse(text) as { profiles: Record<string, Tokens> };
    },
    async logInNewPerson(...args: string[]) {
      const env = newPerson();
      const { code, stderr } = await logInWithCommand([url, ...args], { env });
      assert.equal(code, 0, stderr);
      return env;
    },
    listServers: (env: Record<string, string>, ...args: string[]) =>
      runToolhostCommand(['servers', 'list', ...args], { env }),
  };
}
