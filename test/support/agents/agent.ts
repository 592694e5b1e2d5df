import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ClientConnection, getTokenVariable } from '@toolhost/mcp-clients/client';
import { ensureNpmProgram } from '../npm.ts';
import { buildIsolatedEnvironment } from '../toolhost/run-script.ts';
import type { AgentKind } from './agent-kinds.ts';
import { runCommand, runInTerminal } from './agent-process.ts';
import type { Person } from './person.ts';
import { startStubModel } from './stub-model.ts';

/** Tools that an agent offered to its model, results of the calls, and the latest request to the model. */
export type Conversation = { tools: string[]; results: string[]; request: string };

/** An agent with its own home and model. */
export type Agent = {
  /** Connects it to exactly these servers. Without a token it logs in. */
  connect(servers: readonly ClientConnection[]): Promise<void>;
  /** Runs the agent with a prompt, which is the script of its model. */
  runPrompt(...steps: readonly string[]): Promise<Conversation>;
  /** Logs the person in at a server. */
  logIn(slug: string): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Prepares a temporary home that holds all files of the agent and isolates it from the files of this machine's user.
 */
async function createHome(kind: AgentKind, model: string, person: Person) {
  const bin = await ensureNpmProgram(kind.program);
  const home = await mkdtemp(join(tmpdir(), 'toolhost-agent-'));
  const location = { home: join(home, 'config'), model };
  const programs = join(home, 'bin');
  const cwd = join(home, 'work');
  for (const folder of [location.home, programs, cwd]) await mkdir(folder);
  const env: Record<string, string> = {
    ...buildIsolatedEnvironment(home),
    PATH: [programs, bin, dirname(process.execPath), process.env.PATH].join(':'),
    BROWSER: await person.installBrowser(programs),
    TERM: 'xterm-256color',
    ...kind.createEnvironment(location),
  };
  return { home, location, cwd, env };
}

/** Starts an agent of a person. `clientDocument` is the URL at which the test publishes its metadata document. */
export async function startAgent(kind: AgentKind, person: Person, clientDocument: string): Promise<Agent> {
  const model = await startStubModel();
  const { home, location, cwd, env } = await createHome(kind, model.url, person).catch(async (error: unknown) => {
    await model.close();
    throw error;
  });
  // By default Claude Code uses a client metadata document at claude.ai, which the tests do not reach.
  env.MCP_OAUTH_CLIENT_METADATA_URL = clientDocument;
  return {
    async connect(servers) {
      await rm(location.home, { recursive: true });
      await mkdir(location.home);
      for (const to of servers) if (to.token !== undefined) env[getTokenVariable(to)] = to.token;
      await runCommand(['sh', '-eu', '-c', await kind.configure(location, servers)], { cwd, env });
    },
    async runPrompt(...steps) {
      model.takeRequests();
      await runCommand(kind.createPromptCommand(steps.join(' ')), { cwd, env });
      const requests = model.takeRequests().filter(({ tools }) => tools.length > 0);
      const { tools, results, body } = requests.at(-1) ?? assert.fail('the agent did not call its model');
      return { tools: tools.map(({ name }) => name), results, request: body };
    },
    async logIn(slug) {
      const done = /authenticated with|success/i;
      await runInTerminal(kind.createLoginCommand(slug), { cwd, env }, done).catch((error: unknown) => {
        throw new Error(`no login: ${person.failures.join(', ')}`, { cause: error });
      });
    },
    async stop() {
      await model.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}
