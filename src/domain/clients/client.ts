import { shellWord } from '../snippets/literals.ts';

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
};

/** Features and limits of a client, from its documentation and issue tracker. */
export type ClientRules = {
  /** Redirect URIs of its logins; empty if each installation has a different one. */
  redirectUris: readonly string[];
  /** True if it connects from the internet, so the URL must be public and use https. */
  isHosted?: true;
  /** True if it can only log in, and cannot send a token from its user. */
  onlyLogsIn?: true;
  /** True if it cannot log in, so its user must enter a token. */
  neverLogsIn?: true;
  /** Only server path that it is known to call. */
  onlyPath?: string;
  /** Maximum number of tools over all servers. It omits or rejects additional tools. */
  maxTools?: number;
  /** Tool name as the model sees it, and its maximum length. */
  toolName: { shown: (server: string, tool: string) => string; max: number };
  /** True if it assumes that a tool changes data unless the annotations state otherwise. */
  wantsHints?: true;
  /**
   * True if its models accept only letters, digits, _ and - in tool names, and it does not replace other characters.
   */
  hasStrictNames?: true;
  /** True if it adds the type to an input schema without one. Other clients reject the tool or the whole list. */
  addsTypes?: true;
  /**
   * True if it uses the first text as structured content if there is none, and fails if that text is JSON but not an
   * object.
   */
  wantsObjects?: true;
};

/** A client: its connection snippet and its rules. */
export type DeclaredClient = {
  id: string;
  name: string;
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

/** Creates a snippet without the fields that are undefined. */
export function snippetOf(where: string, format: SnippetFormat, code: string, rest: Partial<Snippet> = {}): Snippet {
  const { install, after } = rest;
  return { where, format, code, ...(install && { install }), ...(after !== undefined && { after }) };
}

/** Returns the remaining steps: one text if the client logs in, another if it has a credential. */
export function left(to: ClientConnection, ofLogin: string | undefined, ofToken?: string): { after?: string } {
  const after = to.token === undefined ? ofLogin : ofToken;
  return after === undefined ? {} : { after };
}

/** Creates a snippet of a JSON configuration file. */
export function inJson(where: string, config: unknown, rest?: Partial<Snippet>): Snippet {
  return snippetOf(where, 'json', prettyJson(config), rest);
}

export function prettyJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** Returns the configuration fields that carry the credential. */
export function headersOf({ token }: Pick<ClientConnection, 'token'>): { headers?: { Authorization: string } } {
  return token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } };
}

/** Returns the credential headers as YAML lines. */
export function yamlHeaders({ token }: ClientConnection, indent: string): string[] {
  if (token === undefined) return [];
  return [`${indent}headers:`, `${indent}  Authorization: ${JSON.stringify(`Bearer ${token}`)}`];
}

/** Returns true if a credential, or a shell variable, needs no quotes in a command. */
function isPlain(token: string): boolean {
  return /^[\w.~+/=…-]+$|^\$\w+$/.test(token);
}

/** Formats the credential as a command argument. The shell expands a variable. */
export function bearerWord(token: string): string {
  const header = `Authorization: Bearer ${token}`;
  return isPlain(token) ? `"${header}"` : shellWord(header);
}

/** Returns the command option that carries the credential, with a leading space. */
export function headerOption({ token }: Pick<ClientConnection, 'token'>): string {
  return token === undefined ? '' : ` --header ${bearerWord(token)}`;
}

/** Returns the name of the environment variable for a server's credential. */
export function tokenVariable({ name }: ClientConnection): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_TOKEN`;
}

/** Returns the command that sets the credential variable. */
export function exportToken(connection: ClientConnection, token: string): string {
  return `export ${tokenVariable(connection)}=${isPlain(token) ? token : shellWord(token)}`;
}

/** Returns the command that connects Claude Code. */
export function claudeCodeCommand({ name, url, token }: ClientConnection): string {
  return `claude mcp add --transport http ${name} ${url}${headerOption({ token })}`;
}

/** Returns the `mcp-remote` command, for clients that support only stdio. */
export function mcpRemoteCommand({ url, token }: ClientConnection): string {
  return `npx mcp-remote ${url}${headerOption({ token })}`;
}
