import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../../files.ts';
import { startPerson } from '../agents/person.ts';
import type { LoginContext } from '../oauth/oauth-clients.ts';
import { ensurePythonPackages } from '../python.ts';
import { buildIsolatedEnvironment } from '../toolhost/run-script.ts';
import type { PeopleClient } from './people-clients.ts';

const packages = ['fastmcp==4.2.3', 'mcp==2.3.0'];
const packageFolder = join(root, 'node_modules', '.cache', 'python-mcp');
const script = join(import.meta.dirname, 'login_client.py');

/** Kills a client that hangs; far longer than a login takes on a busy machine. */
const timeoutMs = 5 * 60_000;

/** Python library whose client `login_client.py` runs. */
export type PythonLibrary = 'mcp' | 'fastmcp';

type PythonReply = { text: string } | { error: string };

/** Starts a client of a Python library and logs a person in. Its browser is that of the person. */
export async function connectPythonClient(library: PythonLibrary, access: LoginContext): Promise<PeopleClient> {
  const bin = await ensurePythonPackages(packageFolder, packages);
  const person = await startPerson('a person', access.completeLogin);
  const env = { ...buildIsolatedEnvironment(access.home), BROWSER: await person.installBrowser(access.home) };
  const child = spawn(join(bin, 'python'), [script, library, access.url], {
    cwd: access.home,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const closed = once(child, 'close');
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const close = async () => {
    child.stdin.end();
    child.kill('SIGKILL');
    await closed;
    await person.close();
  };
  const readText = async (): Promise<string> => {
    const { value = '{"error": "the client exited"}' } = await lines.next();
    const reply = JSON.parse(value) as PythonReply;
    if ('text' in reply) return reply.text;
    throw new Error([reply.error, ...person.failures, stderr].join('\n'));
  };
  try {
    await readText();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    call(tool) {
      child.stdin.write(`${tool}\n`);
      return readText();
    },
    close,
  };
}
