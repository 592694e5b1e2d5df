import { type Access, accessOf } from '../../domain/config/access.ts';
import { type Authentication, credentialsOf } from '../../domain/config/authentication.ts';
import { toJsonSchema } from '../../domain/config/input-schema.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { resolvedTool } from '../../domain/config/server-wide.ts';
import { enabledTools, type Tool } from '../../domain/config/tool.ts';
import { limitsAnswers, reservedToolNames, toolList } from '../../domain/config/tool-list.ts';
import type { TokenRequest } from '../../domain/credentials/token-request.ts';
import type { CallLimits } from '../../domain/limits.ts';
import type { MirroredArgument } from '../../domain/mcp.ts';
import { compileRequest, type RequestTemplate } from '../../domain/request/request-template.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { compileReading, type Reading, readingSource } from '../answer/reading.ts';
import { type ArgumentRules, compileArguments } from '../arguments/prepare-arguments.ts';
import { type CredentialHash, createStoredCredentialHash, credentialHash } from './credential-hash.ts';
import { createCatalogue, type ToolCatalogue } from './tool-catalogue.ts';

/** A decrypted secret of a server, and the origins that it may be sent to. */
export type OpenSecret = { value: string; origins: readonly string[] };

/** A hosted server ready to be called; compiled once per version. Its tools are compiled at their first call. */
export type HostedServer = {
  id: string;
  workspaceId: string;
  slug: string;
  config: ServerConfig;
  access: Access;
  info: string;
  secrets: ReadonlyMap<string, OpenSecret>;
  /** Requests for tokens with client credentials; filled by the first calls. */
  tokenRequests: Map<Authentication, TokenRequest>;
  limits: { server: CallLimits; workspace: CallLimits };
  /** End of the capture of calls, in epoch ms; undefined when none is on. */
  captureUntil: number | undefined;
  toolsJson: () => Buffer;
  toolNames: readonly string[];
  /** Undefined for disabled tools too. */
  tool: (name: string) => HostedTool | undefined;
  /** The mirrored arguments of a tool, or undefined when there is no such tool. */
  mirrored: (name: string) => readonly MirroredArgument[] | undefined;
  /** The tools to search, in search mode. */
  catalogue: ToolCatalogue | undefined;
  /** Whether answers have a limit, and so the tool `read_more` gives the rest of them. */
  hasReadMore: boolean;
};

export type HostedTool = {
  name: string;
  request: RequestTemplate;
  args: ArgumentRules;
  /** Credentials that the service gets tokens with; empty for most tools. */
  clientCredentials: readonly Authentication[];
  reading: Reading;
  /** JSON texts for threads, written on first use. */
  texts: { inputSchema: () => string; reading: () => string };
  /** Digests the credentials of a request. */
  credentialHash: CredentialHash;
  timeoutMs: number;
  limitBytes: number;
  followsRedirects: boolean;
  mirrored: readonly MirroredArgument[];
};

export type ServerSource = {
  id: string;
  workspaceId: string;
  slug: string;
  version: number;
  config: ServerConfig;
  captureUntil?: number;
};

const defaultLimitBytes = 10 * 1024 * 1024;

export function compileServer(
  source: ServerSource,
  secrets: ReadonlyMap<string, OpenSecret>,
  limits: HostedServer['limits'],
  userAgent: string,
): HostedServer {
  const { config } = source;
  const access = accessOf(config);
  const tools = enabledTools(config);
  const byName = new Map(tools.map((entry) => [entry.name, entry]));
  const compiled = new Map<string, HostedTool>();
  const catalogue = config.tool_mode === 'search' ? createCatalogue(config) : undefined;
  const hasReadMore = limitsAnswers(config);
  const ownNames = [...reservedToolNames(config)];
  let toolsJson: Buffer | undefined;
  const tool = (name: string) => {
    const known = compiled.get(name);
    if (known) return known;
    const wanted = byName.get(name);
    if (!wanted) return undefined;
    const made = compileTool(resolvedTool(wanted, config), { config, access, userAgent });
    compiled.set(name, made);
    return made;
  };
  return {
    id: source.id,
    workspaceId: source.workspaceId,
    slug: source.slug,
    config,
    access,
    info: JSON.stringify({ name: source.slug, title: config.name, version: String(source.version) }),
    secrets,
    tokenRequests: new Map(),
    limits,
    captureUntil: source.captureUntil,
    toolsJson: () => {
      toolsJson ??= Buffer.from(JSON.stringify(toolList(config)));
      return toolsJson;
    },
    toolNames: [...ownNames, ...byName.keys()],
    tool,
    mirrored: (name) => {
      const found = catalogue?.isListed(name) === false ? undefined : tool(name);
      if (found) return found.mirrored;
      // Clients mirror only what a listed tool declares.
      return ownNames.includes(name) || (catalogue && byName.has(name)) ? [] : undefined;
    },
    catalogue,
    hasReadMore,
  };
}

type OfServer = { config: ServerConfig; access: Access; userAgent: string };

/** `tool` is resolved: it has the fields that its server sets for all tools. */
function compileTool(tool: Tool, { config, access, userAgent }: OfServer): HostedTool {
  const schema = toJsonSchema(tool.input_schema);
  const source = readingSource(tool, config.max_answer_tokens);
  return {
    name: tool.name,
    request: compileRequest(tool, config.authentication, userAgent),
    args: compileArguments(tool.input_schema, schema),
    clientCredentials: credentialsOf(config.authentication).filter(({ type }) => type === 'ClientCredentials'),
    reading: compileReading(source),
    texts: { inputSchema: once(() => JSON.stringify(schema)), reading: once(() => JSON.stringify(source)) },
    credentialHash: access === 'api_key' ? createStoredCredentialHash() : credentialHash,
    timeoutMs: tool.timeout_ms,
    limitBytes: tool.response_limit_bytes ?? defaultLimitBytes,
    followsRedirects: tool.redirects === 'follow',
    mirrored: mirroredArguments(schema, []),
  };
}

function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Arguments with `x-mcp-header`; only `properties` can declare them. */
function mirroredArguments(schema: JsonSchema, path: readonly string[]): MirroredArgument[] {
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, property]) => {
    if (typeof property !== 'object' || property === null) return [];
    const header = property['x-mcp-header'];
    const own: MirroredArgument[] =
      typeof header === 'string'
        ? [{ header, path: [...path, name], type: property.type as MirroredArgument['type'] }]
        : [];
    return [...own, ...mirroredArguments(property, [...path, name])];
  });
}
