import { quoteShellWord } from './literals.ts';

/** A server that a client connects to. */
export type ClientConnection = {
  /** Name of the server in the client: letters, digits, and `-`. */
  name: string;
  url: string;
  /** Alternative URL with the path `/mcp` on the server's own host. */
  hostUrl?: string | undefined;
  /** Credential, or `$NAME` of a shell variable; undefined if the client opens a login. */
  token: string | undefined;
};

/** Format of a snippet: a command, a file, a program, a URL to paste, or a form with one field per line. */
export type SnippetFormat = 'sh' | 'json' | 'toml' | 'yaml' | 'ts' | 'python' | 'address' | 'form';

/** Text that a person copies to connect a client. */
export type Snippet = {
  /** Location to paste it. */
  where: string;
  format: SnippetFormat;
  code: string;
  /** Link that connects the client. It never contains the credential, because links are kept in histories and logs. */
  install?: { label: string; href: string };
  /** Remaining steps. */
  after?: string;
  /** Command that ends the remaining steps. */
  command?: string;
};

/** Features and limits of a client, from its documentation and issue tracker. */
export type ClientRules = {
  /** Redirect URIs of its logins; empty if each installation has a different one. */
  redirectUris: readonly string[];
  /** True if it can only log in, and cannot send a token from its user. */
  canOnlyLogIn?: true;
  /** True if it cannot log in, so its user must enter a token. */
  cannotLogIn?: true;
  /** Only server path that it is known to call. */
  requiredPath?: string;
  /** Maximum number of tools over all servers. It omits or rejects additional tools. */
  maxTools?: number;
  /** Tool name as the model sees it, and its maximum length. */
  toolName: { format: (server: string, tool: string) => string; max: number };
  /** True if it assumes that a tool changes data unless the annotations state otherwise. */
  requiresHints?: true;
  /**
   * True if its models accept only letters, digits, _ and - in tool names, and it does not replace other characters.
   */
  hasStrictNames?: true;
  /** True if it adds the type to an input schema without one. Other clients reject the tool or the whole list. */
  addsMissingTypes?: true;
  /**
   * True if it uses the first text as structured content if there is none, and fails if that text is JSON but not an
   * object.
   */
  requiresObjects?: true;
};

/** Groups of clients, in the order in which people see them. */
export const clientGroups = ['Apps', 'Terminals', 'Editors', 'Frameworks', 'APIs'] as const;
export type ClientGroup = (typeof clientGroups)[number];

/** A client: its connection snippet and its rules. */
export type DeclaredClient = {
  id: string;
  name: string;
  group: ClientGroup;
  /** True if it connects from the internet, so the URL must be public and use https. */
  isHosted?: true;
  /** Page that the snippet was compared with, and the date of the comparison. */
  documentation: { url: string; checked: string };
  /** Returns undefined if the client cannot use such a server. */
  snippet: (to: ClientConnection) => Snippet | undefined;
  /**
   * Absent for libraries and tools, whose limits depend on the program that uses them, and for clients about which too
   * little is known.
   */
  rules?: ClientRules;
};

/** Returns the page that a snippet was compared with, and the date of the comparison. */
export const toDocumentation = (url: string, checked = '2026-11-22') => ({ url, checked });

/** Unchanged tool name. Models accept up to 64 characters. */
export const plainName: ClientRules['toolName'] = { format: (_server, tool) => tool, max: 64 };

/** Creates a snippet without the fields that are undefined. */
export function createSnippet(
  where: string,
  format: SnippetFormat,
  code: string,
  extras: Partial<Snippet> = {},
): Snippet {
  const { install, after, command } = extras;
  return {
    where,
    format,
    code,
    ...(install && { install }),
    ...(after !== undefined && { after }),
    ...(command !== undefined && { command }),
  };
}

type NextSteps = Pick<Snippet, 'after' | 'command'>;

/** Returns the remaining steps: those of a client that logs in, or those of one that has a credential. */
export function getNextSteps(
  to: ClientConnection,
  loginSteps: NextSteps | string | undefined,
  tokenSteps?: NextSteps | string,
): NextSteps {
  const steps = to.token === undefined ? loginSteps : tokenSteps;
  return typeof steps === 'string' ? { after: steps } : (steps ?? {});
}

/** Creates a snippet of a JSON configuration file. */
export function createJsonSnippet(where: string, config: unknown, extras?: Partial<Snippet>): Snippet {
  return createSnippet(where, 'json', formatJson(config), extras);
}

export function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** Returns the configuration fields that carry the credential. */
export function getHeaders({ token }: Pick<ClientConnection, 'token'>): { headers?: { Authorization: string } } {
  return token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } };
}

/** Returns the credential headers as YAML lines. */
export function formatYamlHeaders({ token }: ClientConnection, indent: string): string[] {
  if (token === undefined) return [];
  return [`${indent}headers:`, `${indent}  Authorization: ${JSON.stringify(`Bearer ${token}`)}`];
}

/** Returns true if a credential, or a shell variable, needs no quotes in a command. */
function needsNoQuotes(token: string): boolean {
  return /^[\w.~+/=…-]+$|^\$\w+$/.test(token);
}

/** Formats the credential as a command argument. The shell expands a variable. */
export function quoteBearerHeader(token: string): string {
  const header = `Authorization: Bearer ${token}`;
  return needsNoQuotes(token) ? `"${header}"` : quoteShellWord(header);
}

/** Returns the command option that carries the credential, with a leading space. */
export function getHeaderOption({ token }: Pick<ClientConnection, 'token'>): string {
  return token === undefined ? '' : ` --header ${quoteBearerHeader(token)}`;
}

/** Returns the name of the environment variable for a server's credential. */
export function getTokenVariable({ name }: ClientConnection): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_TOKEN`;
}

/** Returns the command that sets the credential variable. */
export function getExportCommand(connection: ClientConnection, token: string): string {
  return `export ${getTokenVariable(connection)}=${needsNoQuotes(token) ? token : quoteShellWord(token)}`;
}

/** Returns the command that connects Claude Code, in the current folder or, with the scope `user`, in all folders. */
export function getClaudeCodeCommand({ name, url, token }: ClientConnection, scope?: 'user'): string {
  const scopeOption = scope === undefined ? '' : ` --scope ${scope}`;
  return `claude mcp add${scopeOption} --transport http ${name} ${url}${getHeaderOption({ token })}`;
}

/** Returns the `mcp-remote` command, for clients that support only stdio. */
export function getMcpRemoteCommand({ url, token }: ClientConnection): string {
  return `npx mcp-remote ${url}${getHeaderOption({ token })}`;
}
