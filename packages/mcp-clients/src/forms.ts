import { type ClientConnection, createSnippet, type DeclaredClient, getNextSteps } from './client.ts';

/** Form fields by label, with the values to enter or choose. */
type Fields = Readonly<Record<string, string>>;

/** A client that is set up in a form and accepts either a credential or a login. */
type Form = Pick<DeclaredClient, 'id' | 'name' | 'isHosted'> & {
  page: string;
  location: string;
  fields: (to: ClientConnection) => Fields;
  withCredential: { fields: (token: string) => Fields; after: string };
  withLogin: { fields: (url: string) => Fields; after: string };
};

function createFormClient({
  id,
  name,
  isHosted,
  page,
  location,
  fields,
  withCredential,
  withLogin,
}: Form): DeclaredClient {
  return {
    id,
    name,
    group: 'Apps',
    ...(isHosted && { isHosted }),
    documentation: { url: page, checked: '2026-11-29' },
    snippet(to) {
      const access = to.token === undefined ? withLogin.fields(to.url) : withCredential.fields(to.token);
      const lines = Object.entries({ ...fields(to), ...access }).map(([label, value]) => `${label}: ${value}`);
      return createSnippet(location, 'form', lines.join('\n'), getNextSteps(to, withLogin.after, withCredential.after));
    },
  };
}

const internetText = 'It connects from the internet, over https.';

export const forms: readonly DeclaredClient[] = [
  createFormClient({
    id: 'n8n',
    name: 'n8n',
    page: 'https://docs.n8n.io/integrations/builtin/cluster-nodes/sub-nodes/n8n-nodes-langchain.toolmcp/',
    location: 'In a workflow, add the MCP Client Tool node to an AI Agent, with these fields:',
    fields: ({ url }) => ({ Endpoint: url, 'Server Transport': 'HTTP Streamable' }),
    withCredential: {
      fields: (token) => ({ Authentication: 'Bearer Auth', 'Bearer Token': token }),
      after: 'Bearer Token is the field of the credential that you create for Bearer Auth.',
    },
    withLogin: {
      fields: (url) => ({ Authentication: 'MCP OAuth2', 'Server URL': url }),
      after: 'Create a credential for MCP OAuth2, leave Use Dynamic Client Registration on, and connect your account.',
    },
  }),
  createFormClient({
    id: 'dify',
    name: 'Dify',
    page: 'https://docs.dify.ai/en/use-dify/build/mcp',
    location: 'Under Tools, MCP, choose Add MCP Server (HTTP):',
    fields: ({ name, url }) => ({
      'Server URL': url,
      Name: name,
      // At most 24 lowercase letters, digits, _ and -.
      'Server Identifier': name.toLowerCase().slice(0, 24),
    }),
    withCredential: {
      fields: (token) => ({ 'Header Name': 'Authorization', 'Header Value': `Bearer ${token}` }),
      after: 'The header is on the Headers tab. Then choose Add & Authorize.',
    },
    withLogin: {
      fields: () => ({ 'Use Dynamic Client Registration': 'on' }),
      after: 'On the Authentication tab, leave Use Dynamic Client Registration on. Then choose Add & Authorize.',
    },
  }),
  createFormClient({
    id: 'open-webui',
    name: 'Open WebUI',
    page: 'https://docs.openwebui.com/features/extensibility/mcp',
    location:
      'As an administrator, add a server under Settings, Admin, Integrations (older versions: Admin Settings, External Tools):',
    fields: ({ name, url }) => ({ Type: 'MCP (Streamable HTTP)', URL: url, ID: name, Name: name }),
    withCredential: {
      fields: (token) => ({ Auth: 'Bearer', Key: token }),
      after: 'Everyone who may use the server shares this credential.',
    },
    withLogin: {
      fields: () => ({ Auth: 'OAuth 2.1' }),
      after:
        'Choose OAuth 2.1, Register Client, and Save. People log in when they turn the tools on in a chat. Set WEBUI_SECRET_KEY, or logins end when Open WebUI restarts.',
    },
  }),
  createFormClient({
    id: 'copilot-studio',
    name: 'Copilot Studio',
    isHosted: true,
    page: 'https://learn.microsoft.com/en-us/microsoft-copilot-studio/mcp-add-existing-server-to-agent',
    location:
      'On the Tools page of an agent, choose Add a tool, New tool, Model Context Protocol, and describe when the agent should use the server:',
    fields: ({ name, url }) => ({ 'Server name': name, 'Server URL': url }),
    withCredential: {
      fields: (token) => ({
        Authentication: 'API key',
        Type: 'Header',
        'Header name': 'Authorization',
        'API key': `Bearer ${token}`,
      }),
      after: `Enter the API key, with Bearer before it, under Create a new connection. ${internetText}`,
    },
    withLogin: {
      fields: () => ({ Authentication: 'OAuth 2.0', Type: 'Dynamic discovery' }),
      after: `Choose OAuth 2.0 with Dynamic discovery, then log in under Create a new connection. ${internetText}`,
    },
  }),
  createFormClient({
    id: 'le-chat',
    name: 'Le Chat',
    isHosted: true,
    page: 'https://docs.mistral.ai/vibe/work/connectors/mcp-connectors',
    location:
      'As an administrator of Le Chat (now Vibe), choose Add Connector, Custom MCP Connector on the Connectors page:',
    fields: ({ name, url }) => ({ 'Connector name': name, 'Server URL': url }),
    withCredential: {
      fields: (token) => ({ Authentication: 'HTTP Bearer Token', Token: token }),
      after: `Then choose Connect. ${internetText}`,
    },
    withLogin: {
      fields: () => ({ Authentication: 'OAuth 2.1' }),
      after: `Choose Connect. It detects OAuth 2.1 and opens the login. ${internetText}`,
    },
  }),
  createFormClient({
    id: 'perplexity',
    name: 'Perplexity',
    isHosted: true,
    page: 'https://www.perplexity.ai/help-center/en/articles/13915507-adding-custom-remote-connectors',
    location: 'In the account settings under Connectors, choose Custom connector, Remote:',
    fields: ({ name, url }) => ({ Name: name, 'MCP Server URL': url, Transport: 'Streamable HTTP' }),
    withCredential: {
      fields: (token) => ({ Authentication: 'API Key', 'API Key': token }),
      after: `Choose Add, then the connector's card to enable it. ${internetText}`,
    },
    withLogin: {
      fields: () => ({ Authentication: 'OAuth' }),
      after: `Choose OAuth and Add, then the connector's card to log in. ${internetText}`,
    },
  }),
];
