import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type Authentication,
  type Authentications,
  authenticationOfTool,
  credentialHeader,
  credentialsOf,
  isStored,
} from '../../domain/config/authentication.ts';
import { toJsonSchema } from '../../domain/config/input-schema.ts';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { type Access, accessOf } from '../../domain/config/server-wide.ts';
import { type Filling, viewSizes } from '../../domain/config/sizes.ts';
import {
  annotationsOf,
  enabledTools,
  limitsAnswers,
  reservedToolNames,
  type Tool,
  toolList,
} from '../../domain/config/tool.ts';
import { type View, viewConfig, viewToolOf } from '../../domain/config/view.ts';
import { keyHeader } from '../../domain/credentials/credential.ts';
import type { TokenRequest } from '../../domain/credentials/token-request.ts';
import { wellFormedJson } from '../../domain/json/json-scan.ts';
import type { CallLimits } from '../../domain/limits.ts';
import type { MirroredArgument } from '../../domain/mcp.ts';
import { compileRequest, type RequestTemplate } from '../../domain/request/request-template.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { searchInstructions } from '../../domain/search/own-tools.ts';
import { plainFailure, type ToolFailure } from '../../errors.ts';
import { compileReading, type Reading, readingSource } from '../answer/reading.ts';
import { type ArgumentRules, compileArguments, withoutFixed } from '../arguments/prepare-arguments.ts';
import { createFilledTools, type FilledTool, type FilledTools } from './filled-tools.ts';
import { createCatalogue, type ToolCatalogue } from './tool-catalogue.ts';

/** A decrypted secret of a server, and the origins that it may be sent to. */
export type OpenSecret = { value: string; origins: readonly string[] };

/**
 * A hosted server or one of its views, ready to be called. It is compiled once per version: views at their first
 * request, and tools at their first call.
 */
export type HostedServer = {
  /** Text of everything that the server was compiled from. It is equal if the stored server has not changed. */
  source: string;
  id: string;
  workspaceId: string;
  slug: string;
  /** Undefined for the server itself. */
  view: ViewOf | undefined;
  config: ServerConfig;
  access: Access;
  /** Sizes of the variables that are interpolated in its tools. */
  filling: Filling;
  /**
   * Lower-case names of headers other than `Authorization` that contain a caller's credential: the header of the
   * credential that callers bring (or of the first one if all are stored), and the API key header if API keys are
   * accepted (spec 5.4.7).
   */
  credentialHeaders: readonly string[];
  info: string;
  /** User agent of its upstream requests. */
  userAgent: string;
  secrets: ReadonlyMap<string, OpenSecret>;
  /** Token requests for client credentials, created by the first calls. */
  tokenRequests: Map<Authentication, TokenRequest>;
  limits: { server: CallLimits; workspace: CallLimits };
  /** End of call capturing, in epoch ms. Undefined if captures are disabled. */
  captureUntil: number | undefined;
  toolsJson: () => Buffer;
  toolNames: readonly string[];
  /** Returns a tool by its name. Undefined for disabled tools too. */
  tool: (name: string) => HostedTool | undefined;
  /** Returns the mirrored arguments of a tool, or undefined if there is no such tool. */
  mirrored: (name: string) => readonly MirroredArgument[] | undefined;
  /** The searchable tools, in search mode. */
  catalogue: ToolCatalogue | undefined;
  /** Instructions that agents read first. */
  instructions: string | undefined;
  /** True if results have a size limit, so that the tool `read_more` returns their remainder. */
  hasReadMore: boolean;
  /** Returns a view of the server by its name. Undefined if there is none, and for views. */
  findView: (name: string) => HostedServer | undefined;
};

/** The name of a view, and the server that contains it. */
export type ViewOf = { name: string; server: HostedServer };

export type HostedTool = {
  name: string;
  /** Reason why the tool cannot be called, if its rendered configuration exceeds a limit. */
  refusal: string | undefined;
  request: RequestTemplate;
  /** Arguments that take a file, as Base64 or as a file URL. */
  fileArguments: readonly string[];
  args: ArgumentRules;
  /** Credentials with which the service obtains tokens. Empty for most tools. */
  clientCredentials: readonly Authentication[];
  reading: Reading;
  /** JSON texts for threads, created on first use. */
  texts: { inputSchema: () => string; reading: () => string };
  /** Digests the credentials of a request. */
  credentialHash: CredentialHash;
  timeoutMs: number;
  limitBytes: number;
  followsRedirects: boolean;
  /** Returns true if, according to its hints, repeating a request has no additional effect. */
  isRepeatable: () => boolean;
  mirrored: readonly MirroredArgument[];
};

export type ServerSource = {
  id: string;
  workspaceId: string;
  slug: string;
  version: number;
  config: ServerConfig;
  captureUntil?: number;
  /** See `HostedServer`. Empty if it is not needed for comparison. */
  source?: string;
};

export const defaultLimitBytes = 10 * 1024 * 1024;

export function compileServer(
  source: ServerSource,
  secrets: ReadonlyMap<string, OpenSecret>,
  limits: HostedServer['limits'],
  userAgent: string,
): HostedServer {
  const { config } = source;
  const access = accessOf(config);
  const filled = createFilledTools(config);
  let memory: ViewMemory | undefined;
  const server: HostedServer = {
    source: source.source ?? '',
    id: source.id,
    workspaceId: source.workspaceId,
    slug: source.slug,
    view: undefined,
    config,
    access,
    filling: filled.filling,
    credentialHeaders: headersOfCallers(config.authentication, access),
    info: infoOf(source, config.name),
    userAgent,
    secrets,
    tokenRequests: new Map(),
    limits,
    captureUntil: source.captureUntil,
    ...compileTools(config, (wanted) => compileTool(filled.ofServer(wanted), { config, access, userAgent }), new Map()),
    findView(name) {
      const view = config.views && Object.hasOwn(config.views, name) ? config.views[name] : undefined;
      if (!view) return undefined;
      memory ??= createViewMemory(config);
      const { version } = source;
      const wanted = { name, view, version, userAgent, filled, memory };
      return memory.view(name, view, () => compileView(server, wanted));
    },
  };
  return server;
}

function headersOfCallers(authentication: Authentications | undefined, access: Access): string[] {
  const all = credentialsOf(authentication);
  const brought = all.find((one) => !isStored(one)) ?? all[0];
  const name = brought && credentialHeader(brought)?.toLowerCase();
  const takesKeys = access === 'api_key' || (access === 'caller_token' && !brought);
  return [...(name === undefined || name === 'authorization' ? [] : [name]), ...(takesKeys ? [keyHeader] : [])];
}

/** Returns the address below `/mcp/`: the slug, or `slug/view`. */
export function addressOf({ slug, view }: HostedServer): string {
  return view === undefined ? slug : `${slug}/${view.name}`;
}

/** Returns the server itself, or its view with this name. Undefined if there is no such view. */
export function serverOrView(server: HostedServer | undefined, view: string | undefined): HostedServer | undefined {
  return view === undefined ? server : server?.findView(view);
}

/** Creates the failure of a call to a tool that could not be rendered. */
export function unfillable(refusal: string): ToolFailure {
  return plainFailure(
    'invalid_arguments',
    `this tool cannot be called until its configuration is corrected: ${refusal}`,
  );
}

type NewView = {
  name: string;
  view: View;
  version: number;
  userAgent: string;
  filled: FilledTools;
  memory: ViewMemory;
};

/**
 * Compiles a view. It has the access, secrets, and limits of its server, and shares the server's compiled tools. Only
 * tools with fixed arguments are compiled for the view.
 */
function compileView(server: HostedServer, { name, view, version, userAgent, filled, memory }: NewView): HostedServer {
  const config = viewConfig(server.config, view);
  const { access } = server;
  const fixed = new Map((view.tools ?? []).map(viewToolOf).map((one) => [one.name, one.arguments ?? {}]));
  const ofServer = new Map(server.config.tools.map((tool) => [tool.name, tool]));
  const compile = (wanted: Tool): HostedTool => {
    const given = fixed.get(wanted.name) ?? {};
    const names = Object.keys(given);
    if (names.length === 0) return server.tool(wanted.name) as HostedTool;
    const make = () => {
      const made = compileTool(filled.ofView(wanted, given), { config, access, userAgent });
      return { ...made, args: withoutFixed(made.args, names) };
    };
    return memory.tool(name, ofServer.get(wanted.name) as Tool, make);
  };
  return {
    ...server,
    view: { name, server },
    config,
    info: infoOf({ slug: `${server.slug}/${name}`, version }, config.name),
    ...compileTools(config, compile),
    findView: () => undefined,
  };
}

function infoOf({ slug, version }: { slug: string; version: number }, title: string): string {
  return JSON.stringify({ name: slug, title: title.toWellFormed(), version: String(version) });
}

type CompiledTools = Pick<
  HostedServer,
  'toolsJson' | 'toolNames' | 'tool' | 'mirrored' | 'catalogue' | 'instructions' | 'hasReadMore'
>;

/** Compiles the tools of a server or view. `kept` caches compiled tools by name; absent if `compile` caches them. */
function compileTools(
  config: ServerConfig,
  compile: (tool: Tool) => HostedTool,
  kept?: Map<string, HostedTool>,
): CompiledTools {
  const { description } = config;
  const inSearch = description === undefined ? searchInstructions : `${description}\n\n${searchInstructions}`;
  const byName = new Map(enabledTools(config).map((entry) => [entry.name, entry]));
  const catalogue = config.tool_mode === 'search' ? createCatalogue(config) : undefined;
  const ownNames = [...reservedToolNames(config)];
  let toolsJson: Buffer | undefined;
  const tool = (name: string) => {
    const known = kept?.get(name);
    if (known) return known;
    const wanted = byName.get(name);
    const made = wanted && compile(wanted);
    if (made) kept?.set(name, made);
    return made;
  };
  return {
    toolsJson: () => {
      toolsJson ??= wellFormedJson(Buffer.from(JSON.stringify(toolList(config))));
      return toolsJson;
    },
    toolNames: [...ownNames, ...byName.keys()],
    tool,
    mirrored: (name) => {
      const found = catalogue?.isListed(name) === false ? undefined : tool(name);
      if (found) return found.mirrored;
      // Clients mirror only arguments that a listed tool declares.
      return ownNames.includes(name) || (catalogue && byName.has(name)) ? [] : undefined;
    },
    catalogue,
    instructions: catalogue ? inSearch : description,
    hasReadMore: limitsAnswers(config),
  };
}

type OfServer = { config: ServerConfig; access: Access; userAgent: string };

function compileTool({ tool, refusal }: FilledTool, { config, access, userAgent }: OfServer): HostedTool {
  const schema = toJsonSchema(tool.input_schema);
  const source = readingSource(tool, config.max_answer_tokens);
  const request = compileRequest(tool, authenticationOfTool(config, tool), userAgent);
  return {
    name: tool.name,
    refusal,
    request,
    fileArguments: request.body.arguments.filter(({ isBase64 }) => isBase64).map(({ name }) => name),
    args: compileArguments(tool.input_schema, schema, annotationsOf(tool).readOnlyHint === true),
    clientCredentials: request.credentials.filter(({ type }) => type === 'ClientCredentials'),
    reading: compileReading(source),
    texts: { inputSchema: once(() => JSON.stringify(schema)), reading: once(() => JSON.stringify(source)) },
    credentialHash: access === 'api_key' ? createStoredCredentialHash() : credentialHash,
    timeoutMs: tool.timeout_ms,
    limitBytes: tool.response_limit_bytes ?? defaultLimitBytes,
    followsRedirects: tool.redirects === 'follow',
    isRepeatable() {
      const { readOnlyHint, idempotentHint } = annotationsOf(tool);
      return readOnlyHint === true || idempotentHint === true;
    },
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

/** Returns arguments with `x-mcp-header`, which only `properties` can declare. */
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

/** Digests the credentials that a request sends. Returns an empty string if it sends none. */
type CredentialHash = (credentials: readonly string[]) => string;

const credentialHash: CredentialHash = (credentials) =>
  // A header cannot contain a line break, so different credential lists never join to the same text.
  credentials.length === 0 ? '' : hash('sha256', credentials.join('\n'), 'base64url');

/** Creates a digest function for stored credentials, which are the same in every call. It caches its last result. */
function createStoredCredentialHash(): CredentialHash {
  let last: readonly string[] = [];
  let digest = '';
  return (credentials) => {
    const isSame = credentials.length === last.length && credentials.every((value, index) => value === last[index]);
    if (isSame) return digest;
    last = [...credentials];
    digest = credentialHash(credentials);
    return digest;
  };
}

/** Cache of a server's compiled views, and of the tools that are compiled for them. */
type ViewMemory = {
  view(name: string, view: View, make: () => HostedServer): HostedServer;
  tool(viewName: string, tool: Tool, make: () => HostedTool): HostedTool;
};

/**
 * Creates the cache of views. Up to twenty views may fix an argument of the same large tool, so they share the space
 * that the server's size includes for them. Entries that exceed it are evicted, least recently used first, and compiled
 * again when needed.
 */
function createViewMemory(config: ServerConfig): ViewMemory {
  const sizes = viewSizes(config);
  const kept = new LRUCache<string, object>({ maxSize: sizes.room() });
  function remembered<Compiled extends object>(key: string, size: () => number, make: () => Compiled): Compiled {
    const known = kept.get(key) as Compiled | undefined;
    if (known) return known;
    const made = make();
    kept.set(key, made, { size: size() });
    return made;
  }
  return {
    view: (name, view, make) => remembered(name, () => sizes.ofView(view), make),
    tool: (viewName, tool, make) => remembered(`${viewName}/${tool.name}`, () => sizes.ofTool(tool), make),
  };
}
