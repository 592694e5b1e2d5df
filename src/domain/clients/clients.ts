import { agentLibraries } from './agent-libraries.ts';
import type { ClientConnection, ClientRules, DeclaredClient, Snippet } from './client.ts';
import { cline, continueDev, cursor, vsCode, windsurf, zed } from './editor-clients.ts';
import { anthropicApi, chatGpt, claude, curl, libreChat, openAiApi } from './hosted-clients.ts';
import { aiSdk, pythonSdk, typescriptSdk } from './libraries.ts';
import {
  claudeCode,
  claudeDesktop,
  codex,
  copilotCli,
  geminiCli,
  goose,
  openCode,
  qwenCode,
} from './terminal-clients.ts';

/**
 * Every client that is known by name. The snippets of the pages and of the dashboard, the checks of a connection, the
 * warnings about tools and `toolhost doctor` derive from this list.
 */
export const clients: readonly DeclaredClient[] = [
  claudeCode,
  claude,
  chatGpt,
  claudeDesktop,
  cursor,
  vsCode,
  codex,
  geminiCli,
  windsurf,
  zed,
  openCode,
  copilotCli,
  qwenCode,
  cline,
  continueDev,
  goose,
  libreChat,
  curl,
  typescriptSdk,
  pythonSdk,
  aiSdk,
  ...agentLibraries,
  openAiApi,
  anthropicApi,
];

/** A client whose rules are known. */
export type KnownClient = { name: string } & ClientRules;

export const knownClients: readonly KnownClient[] = clients.flatMap(({ name, rules }) =>
  rules === undefined ? [] : [{ name, ...rules }],
);

/** Clients that log in, and whose redirect URIs are known. */
export const registeringClients: readonly KnownClient[] = knownClients.filter(
  ({ redirectUris }) => redirectUris.length > 0,
);

/** The models behind several clients take no other characters, although MCP allows a dot. */
export const toolNameOfModels = /^[A-Za-z0-9_-]+$/;
export const clientsWithStrictNames: readonly string[] = clientsThat(({ hasStrictNames }) => hasStrictNames);

/** Names as a part of a sentence. */
export function inWords(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** Names of the known clients that a rule fits. */
export function clientsThat(fits: (client: KnownClient) => boolean | undefined): string[] {
  return knownClients.filter(fits).map(({ name }) => name);
}

export type ClientSnippet = Snippet & { id: string; name: string };

/** How each client is connected to a server; those that cannot use it are left out. */
export function snippetsFor(to: ClientConnection): ClientSnippet[] {
  return clients.flatMap(({ id, name, snippet }) => {
    const made = snippet(to);
    return made === undefined ? [] : [{ id, name, ...made }];
  });
}
