import assert from 'node:assert/strict';
import { startAgent } from '../agents/agent.ts';
import { type AgentKind, claudeCode, codex } from '../agents/agent-kinds.ts';
import { startPerson } from '../agents/person.ts';
import { formatStep } from '../agents/stub-model.ts';
import { type LoginContext, loginClients } from '../oauth/oauth-clients.ts';
import { getResultText } from '../one-tool.ts';
import { connectPythonClient, type PythonLibrary } from './python-clients.ts';

/** A client that has logged a person in at a server. */
export type PeopleClient = {
  /** Calls a tool without arguments. Returns the text that the model gets. @throws Error if there is no result */
  call(tool: string): Promise<string>;
  close(): Promise<void>;
};

export type PeopleLoginContext = LoginContext & {
  slug: string;
  /** URL of a client metadata document, for agents that use one. */
  clientDocument: string;
};

/** A client that people log in with. */
export type PeopleClientKind = {
  name: string;
  /** True if it connects at the name localhost, and not at the address of this machine. */
  usesLocalhost?: true;
  /** @throws Error if the login is refused */
  connect(access: PeopleLoginContext): Promise<PeopleClient>;
};

/** Returns one of the clients that run in this process or as a bridge. */
function toPeopleClient(name: string): PeopleClientKind {
  const kind = loginClients.find((client) => client.name === name) ?? assert.fail(name);
  return {
    name,
    async connect(access) {
      const client = await kind.connect(access);
      return {
        async call(tool) {
          const result = await client.callTool(tool, {});
          assert.notEqual(result.isError, true, JSON.stringify(result.content));
          return getResultText(result);
        },
        close: () => client.close(),
      };
    },
  };
}

function createPythonClient(name: string, library: PythonLibrary): PeopleClientKind {
  return { name, connect: (access) => connectPythonClient(library, access) };
}

function createAgentClient(kind: AgentKind): PeopleClientKind {
  return {
    name: kind.name,
    usesLocalhost: true,
    async connect({ slug, url, clientDocument, completeLogin }) {
      const person = await startPerson('a person', completeLogin);
      const agent = await startAgent(kind, person, clientDocument);
      const close = async () => {
        await agent.stop();
        await person.close();
      };
      try {
        await agent.connect([{ name: slug, url, token: undefined }]);
        await agent.logIn(slug);
      } catch (error) {
        await close();
        throw error;
      }
      return {
        async call(tool) {
          const { results, tools } = await agent.runPrompt(formatStep(kind.getToolName(slug, tool)));
          return results[0] ?? assert.fail(`the agent offered only: ${tools.join(' ')}`);
        },
        close,
      };
    },
  };
}

export const peopleClients: readonly PeopleClientKind[] = [
  toPeopleClient('SDK v1'),
  toPeopleClient('SDK v2, auto'),
  toPeopleClient('mcp-remote'),
  createPythonClient('Python SDK', 'mcp'),
  createPythonClient('FastMCP', 'fastmcp'),
  createAgentClient(claudeCode),
  createAgentClient(codex),
];
