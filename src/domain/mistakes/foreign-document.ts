/** Recognises documents of other programs that people and agents give where a configuration is expected. */

type Document = { [field: string]: unknown };

type Kind = { name: string; isIt: (document: Document) => boolean; advice: string };

const importing =
  'import it with the operation importApi, or with: toolhost import FILE; it makes a configuration of the operations that you choose';

const kinds: readonly Kind[] = [
  {
    name: 'an OpenAPI document',
    isIt: ({ openapi, swagger }) => typeof openapi === 'string' || typeof swagger === 'string',
    advice: importing,
  },
  {
    name: 'a Postman collection',
    isIt: ({ info, item, collection }) =>
      (isObject(info) && (Array.isArray(item) || '_postman_id' in info)) ||
      (isObject(collection) && isObject(collection.info) && Array.isArray(collection.item)),
    advice: importing,
  },
  { name: 'a HAR file', isIt: ({ log }) => isObject(log) && Array.isArray(log.entries), advice: importing },
  {
    name: 'a file that says which servers a client connects to',
    isIt: ({ mcpServers, servers, context_servers }) =>
      [mcpServers, context_servers].some(isObject) || (isObject(servers) && Object.values(servers).some(isConnection)),
    advice:
      'such a file names MCP servers that exist already, so nothing is made of it; a configuration names an HTTP API and its tools',
  },
  {
    name: 'a list of tools as an MCP server gives it',
    isIt: ({ tools }) => Array.isArray(tools) && tools.length > 0 && tools.every(isListed),
    advice:
      'it does not say which HTTP requests the tools make; give each tool a method and a url, and its input_schema',
  },
  {
    name: 'the answer of getMcpServer',
    isIt: ({ server, config }) => isObject(server) && isObject(config) && Array.isArray(config.tools),
    advice: 'send only the value of its field config',
  },
  {
    name: 'the result of a GraphQL introspection',
    isIt: ({ data, __schema }) => isObject(__schema) || (isObject(data) && isObject(data.__schema)),
    advice: 'write a tool for each query: method POST, and the query as an argument with a constant "value"',
  },
];

/** What a document is, when it is one of another program, and what to do with it; undefined otherwise. */
export function foreignDocument(raw: unknown): string | undefined {
  if (typeof raw === 'string') return foreignText(raw);
  if (!isObject(raw)) return undefined;
  const kind = kinds.find(({ isIt }) => isIt(raw));
  return kind && sentence(kind.name, kind.advice);
}

/** The same for text that is not JSON: a command line of curl, or a description in YAML. */
export function foreignText(text: string): string | undefined {
  const start = text.slice(0, 1000);
  if (/^\s*(?:\$\s+)?curl(?:\.exe)?\s+\S/.test(start)) return sentence('a curl command', importing);
  return /^["']?(?:openapi|swagger)["']?:\s/m.test(start) ? sentence('an OpenAPI document', importing) : undefined;
}

const sentence = (name: string, advice: string) => `this is ${name}, not a configuration; ${advice}`;

function isObject(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isConnection(value: unknown): boolean {
  return isObject(value) && (typeof value.command === 'string' || typeof value.url === 'string');
}

/** A tool of `tools/list` (MCP, server/tools). */
function isListed(tool: unknown): boolean {
  return isObject(tool) && isObject(tool.inputSchema) && !('url' in tool) && !('method' in tool);
}
