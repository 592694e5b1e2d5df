import { shellWord } from '../snippets/literals.ts';

/** A server that a client is connected to. */
export type ClientConnection = {
  /** The name of the server in the client: letters, digits and `-`. */
  name: string;
  url: string;
  /** A second address, whose path is `/mcp`, on a host of its own. */
  hostUrl?: string | undefined;
  /** The credential, or `$NAME` of a variable of the shell; undefined where the client opens a login. */
  token: string | undefined;
};

/** The format of a snippet: a command, a file, a program, an address to paste, or a form with one field per line. */
export type SnippetFormat = 'sh' | 'json' | 'toml' | 'yaml' | 'ts' | 'python' | 'address' | 'form';

/** What a person copies to connect a client. */
export type Snippet = {
  /** Where it goes. */
  where: string;
  format: SnippetFormat;
  code: string;
  /** A link that connects the client. It never holds the credential, because links are kept in histories and logs. */
  install?: { label: string; href: string };
  /** What is left to do. */
  after?: string;
};

/** What a client takes and refuses, from its documentation and its issue tracker. */
export type ClientRules = {
  /** The addresses to which its logins return; none where each installation has another one. */
  redirectUris: readonly string[];
  /** It connects from the internet, so the address must be public and https. */
  isHosted?: true;
  /** It can only log in, not send a token that its user gave it. */
  onlyLogsIn?: true;
  /** It cannot log in: its user has to give it a token. */
  neverLogsIn?: true;
  /** The only path of a server that it is known to call. */
  onlyPath?: string;
  /** Number of tools that it uses, over all servers; it leaves out or refuses the rest. */
  maxTools?: number;
  /** The name of a tool as the model sees it, and the longest one that works. */
  toolName: { shown: (server: string, tool: string) => string; max: number };
  /** It takes a tool for one that changes things unless its annotations say otherwise. */
  wantsHints?: true;
  /** Its models take only letters, digits, _ and - in names of tools, and it does not replace others. */
  hasStrictNames?: true;
  /** It adds the type of an input schema that has none; others refuse the tool or the whole list. */
  addsTypes?: true;
  /** Without structured content it takes the first text for that, and fails where the text is JSON and no object. */
  wantsObjects?: true;
};

/** One client: how it is connected, and what it takes. */
export type DeclaredClient = {
  id: string;
  name: string;
  /** The page that the snippet was compared with, and the day of that. */
  documentation: { url: string; checked: string };
  /** Undefined where the client cannot use such a server. */
  snippet: (to: ClientConnection) => Snippet | undefined;
  /** Absent for libraries and tools, whose limits are those of the program around them, and where too little is known. */
  rules?: ClientRules;
};

/** A snippet; whatever is undefined is left out. */
export function snippetOf(where: string, format: SnippetFormat, code: string, rest: Partial<Snippet> = {}): Snippet {
  const { install, after } = rest;
  return { where, format, code, ...(install && { install }), ...(after !== undefined && { after }) };
}

/** What is left to do where the client logs in, and where it was given a credential. */
export function left(to: ClientConnection, ofLogin: string | undefined, ofToken?: string): { after?: string } {
  const after = to.token === undefined ? ofLogin : ofToken;
  return after === undefined ? {} : { after };
}

/** A snippet of a configuration file in JSON. */
export function inJson(where: string, config: unknown, rest?: Partial<Snippet>): Snippet {
  return snippetOf(where, 'json', prettyJson(config), rest);
}

export function prettyJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** The fields of a configuration file that carry the credential. */
export function headersOf({ token }: Pick<ClientConnection, 'token'>): { headers?: { Authorization: string } } {
  return token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } };
}

/** Those fields as lines of YAML. */
export function yamlHeaders({ token }: ClientConnection, indent: string): string[] {
  if (token === undefined) return [];
  return [`${indent}headers:`, `${indent}  Authorization: ${JSON.stringify(`Bearer ${token}`)}`];
}

/** Whether a credential, or a variable of the shell that holds it, stands in a command without quotes. */
function isPlain(token: string): boolean {
  return /^[\w.~+/=…-]+$|^\$\w+$/.test(token);
}

/** The credential as an argument of a command; a variable of the shell is filled in by the shell. */
export function bearerWord(token: string): string {
  const header = `Authorization: Bearer ${token}`;
  return isPlain(token) ? `"${header}"` : shellWord(header);
}

/** The option of a command that carries the credential, with a space before it. */
export function headerOption({ token }: Pick<ClientConnection, 'token'>): string {
  return token === undefined ? '' : ` --header ${bearerWord(token)}`;
}

/** A variable of the environment for the credential of a server. */
export function tokenVariable({ name }: ClientConnection): string {
  return `${name.toUpperCase().replaceAll('-', '_')}_TOKEN`;
}

/** The command that sets that variable. */
export function exportToken(connection: ClientConnection, token: string): string {
  return `export ${tokenVariable(connection)}=${isPlain(token) ? token : shellWord(token)}`;
}

/** The command that connects Claude Code. */
export function claudeCodeCommand({ name, url, token }: ClientConnection): string {
  return `claude mcp add --transport http ${name} ${url}${headerOption({ token })}`;
}

/** The command of `mcp-remote`, for clients that only speak stdio. */
export function mcpRemoteCommand({ url, token }: ClientConnection): string {
  return `npx mcp-remote ${url}${headerOption({ token })}`;
}
