import { isIP } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import type { QueryCharge } from '@toolhost/credentials/client-request';
import { AppError } from '@toolhost/errors/errors';
import { revisions } from '@toolhost/mcp-protocol/mcp';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import type { Access } from '@toolhost/tool-config/server-wide';
import { type Context, Hono } from 'hono';
import type { ServiceHosts } from '../own-hosts.ts';
import { buildUrl, routes } from '../routes.ts';
import { matchesEntityTag, serializeDocument } from './rest.ts';

type Env = { Bindings: HttpBindings };

/** A hosted server, as far as its published documents describe it. */
export type PublishedServer = {
  slug: string;
  version: string;
  access: Access;
  config: Pick<ServerConfig, 'name' | 'description' | 'icons' | 'website_url' | 'public'>;
};

export type PublishedDocumentsDeps = {
  baseUrl: string;
  ownHosts: ServiceHosts;
  /** Returns the URL of a server on its own host. Undefined if servers have no own hosts. */
  getServerHostUrl: (slug: string) => string | undefined;
  findServer: (slug: string, chargeQuery: QueryCharge) => Promise<PublishedServer | undefined>;
  findPublicSlugs: () => Promise<string[]>;
  /** Tokens with which OpenAI verifies hosts, by host with or without its port. */
  appsChallenges: ReadonlyMap<string, string>;
  /** Returns true if the sender may make another request in this minute. */
  isWithinRateLimit: (request: HttpBindings['incoming']) => boolean;
  /** Returns the charge for a query about a slug, which the sender may have made up. */
  getQueryCharge: (request: HttpBindings['incoming']) => QueryCharge;
};

const cardType = 'application/mcp-server-card+json';
const schemas = 'https://static.modelcontextprotocol.io/schemas';

/**
 * Creates the routes of the documents that directories and clients read before they connect: the server card
 * (SEP-2127), the `server.json` of the MCP registry, the catalog of this service, and the domain challenge of OpenAI.
 * Only servers with `public: true` have them.
 */
export function createPublishedDocuments(deps: PublishedDocumentsDeps): Hono<Env> {
  const router = new Hono<Env>();
  router.get(routes.serverCard, async (c) =>
    respond(c, toServerCard(await findPublicServer(c, deps), getServerUrl(c, deps), deps), cardType),
  );
  router.get(routes.registryDocument, async (c) =>
    respond(c, toRegistryDocument(await findPublicServer(c, deps), getServerUrl(c, deps), deps), 'application/json'),
  );
  router.get(routes.aiCatalog, async (c) => {
    checkRate(c, deps);
    const baseUrl = deps.ownHosts.getBaseUrl(c.req.header('host'));
    return respond(c, toCatalog(await deps.findPublicSlugs(), baseUrl), 'application/ai-catalog+json');
  });
  router.get(routes.appsChallenge, (c) => {
    const host = c.req.header('host')?.toLowerCase() ?? '';
    const token = deps.appsChallenges.get(host) ?? deps.appsChallenges.get(host.replace(/:\d+$/, ''));
    if (token === undefined) throw new AppError('notFound', 'this host has no challenge; set OPENAI_APPS_CHALLENGE');
    return c.text(token);
  });
  return router;
}

function checkRate(c: Context<Env>, { isWithinRateLimit }: PublishedDocumentsDeps): void {
  if (!isWithinRateLimit(c.env.incoming))
    throw new AppError('tooMany', 'too many requests from this address; retry in a minute', { retryAfterS: 60 });
}

/** @throws AppError notFound for a server that is not public, as for one that does not exist */
async function findPublicServer(c: Context<Env>, deps: PublishedDocumentsDeps): Promise<PublishedServer> {
  checkRate(c, deps);
  const server = await deps.findServer(c.req.param('slug') ?? '', deps.getQueryCharge(c.env.incoming));
  if (!server?.config.public) throw new AppError('notFound', 'there is no public server at this URL');
  return server;
}

/** Returns the URL of a server on the requested host. */
function getServerUrl(c: Context<Env>, { ownHosts, getServerHostUrl }: PublishedDocumentsDeps): string {
  const slug = c.req.param('slug') ?? '';
  const host = c.req.header('host')?.toLowerCase();
  const serverHostUrl = getServerHostUrl(slug);
  if (serverHostUrl !== undefined && new URL(serverHostUrl).host === host) return serverHostUrl;
  return buildUrl(ownHosts.getBaseUrl(host), routes.mcp, slug);
}

/** Sends a document that any web page may read. Caches revalidate it after five minutes. */
function respond(c: Context<Env>, document: object, contentType: string): Response {
  const { text, etag } = serializeDocument(document);
  const headers = {
    ETag: etag,
    'Cache-Control': 'public, max-age=300',
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Expose-Headers': 'ETag',
  };
  if (matchesEntityTag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers);
  return c.body(text, 200, { ...headers, 'Content-Type': contentType });
}

/** Maximum length of a description in a card and in the registry, in characters. */
const maxDescriptionLength = 100;

function toIdentity(server: PublishedServer, { baseUrl }: PublishedDocumentsDeps): object {
  const { name, description, icons, website_url: websiteUrl } = server.config;
  return {
    name: `${toReversedHost(baseUrl)}/${server.slug}`,
    title: name,
    description: truncate(description?.trim().replaceAll(/\s+/g, ' ') || name),
    version: server.version,
    icons,
    websiteUrl,
  };
}

function truncate(text: string): string {
  if (text.length <= maxDescriptionLength) return text;
  return `${text.slice(0, maxDescriptionLength - 1).toWellFormed()}…`;
}

/** Returns the host of a URL in reverse DNS order, such as `com.example.tools`. */
function toReversedHost(url: string): string {
  const { hostname } = new URL(url);
  if (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0) return 'localhost';
  return hostname.split('.').reverse().join('.');
}

function toServerCard(server: PublishedServer, url: string, deps: PublishedDocumentsDeps): object {
  const remote = { ...toRemote(server, url), supportedProtocolVersions: revisions };
  return { $schema: `${schemas}/v1/server-card.schema.json`, ...toIdentity(server, deps), remotes: [remote] };
}

function toRegistryDocument(server: PublishedServer, url: string, deps: PublishedDocumentsDeps): object {
  return {
    $schema: `${schemas}/2025-12-11/server.schema.json`,
    ...toIdentity(server, deps),
    remotes: [toRemote(server, url)],
  };
}

/** Describes the endpoint. Clients that cannot log in ask the person for the credential. */
function toRemote({ access }: PublishedServer, url: string): object {
  const remote = { type: 'streamable-http', url };
  if (access !== 'api_key' && access !== 'caller_token') return remote;
  const description = access === 'api_key' ? 'API key for this server' : 'Token of the API behind this server';
  const token = { description, isRequired: true, isSecret: true };
  const header = { name: 'Authorization', value: 'Bearer {token}', isRequired: true, isSecret: true };
  return { ...remote, headers: [{ ...header, variables: { token } }] };
}

function toCatalog(slugs: readonly string[], baseUrl: string): object {
  const { hostname } = new URL(baseUrl);
  return {
    specVersion: '1.0',
    entries: slugs.map((slug) => ({
      identifier: `urn:air:${hostname.replaceAll(/[[\]]/g, '')}:mcp:${slug}`,
      type: cardType,
      url: buildUrl(baseUrl, routes.serverCard, slug),
    })),
  };
}
