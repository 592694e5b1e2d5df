import type { Kysely } from 'kysely';
import type { OwnHosts } from '../domain/http/own-hosts.ts';
import type { Random } from '../domain/ids.ts';
import type { Lookup } from '../domain/visit.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import type { Db } from '../store/db.ts';
import type { Tables } from '../store/schema.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ClientDocuments } from './clients/client-document.ts';
import type { LoginServer } from './login-server.ts';
import type { HandedOutTokens } from './tokens/handed-out.ts';
import type { UnsavedTokens } from './tokens/unsaved-tokens.ts';

/** Dependencies of the OAuth proxy. */
export type OAuthParts = {
  db: Kysely<Tables>;
  keyring: Keyring;
  http: HttpClient;
  /** Whether clients may describe themselves by a document. */
  takesDocuments: boolean;
  /** Documents of clients, fetched for an address of a stranger. */
  documentsOf: (network: string) => ClientDocuments;
  handedOut: HandedOutTokens;
  unsaved: UnsavedTokens;
  /** Refreshes under way of tokens that agents hold themselves, by the hash of the refresh token. */
  refreshing: Map<string, Promise<TokenAnswer>>;
  random: Random;
  /** Epoch milliseconds. */
  now: () => number;
  baseUrl: string;
  /** Hosts where no client waits for an answer. */
  ownHosts: OwnHosts;
  /** A server with a login; the name of its operator is left out. `look` queries the store for a slug not seen before. */
  findServer: (slug: string, look?: Lookup) => Promise<LoginServer | undefined>;
  /** The same server with the name of its operator, for people. */
  withOperator: (server: LoginServer) => Promise<LoginServer>;
  /** Applies recorded changes in this process at once, instead of at the next poll. */
  onCommitted: () => Promise<void>;
  /** Writes an event down, in the transaction of what it is about. */
  audit: (db: Db, event: LoginRecord) => Promise<void>;
  log: (message: string, fields: { [key: string]: unknown }) => void;
  /** Called with the id of the grant of each valid access token that was presented. */
  onUse: (grantId: string) => void;
  /** Counts events for the metrics. */
  onEvent: (event: LoginEvent) => void;
};

/** Reports a fault of this program. */
export type FaultReport = { onUnexpected: (error: unknown, requestId: string) => void };

/** An event of a login for the audit log; `detail` holds no secret. */
export type LoginRecord = {
  server: LoginServer;
  /** At the management server that of the person, once they are known. */
  workspaceId: string;
  name: 'login' | 'loginFailed' | 'loginRevoked';
  detail: { [key: string]: unknown };
  requestId: string;
};

/** The same for one request, whose sender chooses the addresses of documents. */
export type RequestParts = OAuthParts & { documents: ClientDocuments };

/** Events of logins. Refreshes are those at the provider. */
export const loginEvents = ['started', 'finished', 'failed', 'refreshed', 'refresh_failed'] as const;
export type LoginEvent = (typeof loginEvents)[number];

/** Answer to a browser: a page, or a redirect to the client. */
export type OAuthAnswer =
  | { kind: 'page'; status: number; html: string; cookies?: string[] }
  | { kind: 'redirect'; location: string; html: string; cookies?: string[] };

/** The answer of a token endpoint (RFC 6749, 5.1). */
export type TokenAnswer = {
  access_token: string;
  token_type: string;
  expires_in?: number;
  refresh_token?: string;
  scope?: string;
};

/** Life spans in ms. */
export const spans = {
  consent: 10 * 60_000,
  login: 10 * 60_000,
  code: 60_000,
  access: 60 * 60_000,
  refresh: 30 * 24 * 60 * 60_000,
  /** How long the previous refresh token is still accepted, for clients whose answer got lost. */
  grace: 30_000,
} as const;
