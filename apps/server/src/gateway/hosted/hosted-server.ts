import { hash } from 'node:crypto';
import { apiKeyHeader } from '@toolhost/credentials/credential';
import type { TokenRequest } from '@toolhost/credentials/token-request';
import { recordableFailure, type ToolFailure } from '@toolhost/errors/errors';
import { toWellFormedJson } from '@toolhost/json/json-scan';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import type { CallLimits } from '@toolhost/limits/call-limits';
import type { MirroredArgument } from '@toolhost/mcp-protocol/mcp';
import {
  type Authentication,
  type Authentications,
  credentialHeader,
  getToolAuthentication,
  isStored,
  toCredentialList,
} from '@toolhost/tool-config/authentication';
import { searchInstructions } from '@toolhost/tool-config/built-in-tools';
import { toJsonSchema } from '@toolhost/tool-config/input-schema';
import { getOriginHosts, getPersonalNames } from '@toolhost/tool-config/personal-values';
import { compileRequest, type RequestTemplate } from '@toolhost/tool-config/request/request-template';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { type Access, getAccess } from '@toolhost/tool-config/server-wide';
import { createViewSizer, type InterpolationSize } from '@toolhost/tool-config/sizes';
import {
  createToolList,
  getAnnotations,
  getEnabledTools,
  getReservedToolNames,
  hasResponseLimit,
  type Tool,
} from '@toolhost/tool-config/tool';
import { createViewConfig, toViewTool, type View } from '@toolhost/tool-config/view';
import { LRUCache } from 'lru-cache';
import { type ArgumentRules, compileArguments, rejectFixedArguments } from '../arguments/prepare-arguments.ts';
import { compileResponseRules, type ResponseRules, toResponseRulesSource } from '../response/response-rules.ts';
import { createRenderedTools, type RenderedTool, type RenderedTools } from './rendered-tools.ts';
import { createCatalog, type ToolCatalog } from './tool-catalog.ts';

/** A decrypted secret of a server, and the origins that it may be sent to. */
export type DecryptedSecret = { value: string; origins: readonly string[] };

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
  interpolation: InterpolationSize;
  /**
   * Lowercase names of headers other than `Authorization` that contain a caller's credential: the header of the
   * credential that callers bring (or of the first one if all are stored), and `x-api-key` if API keys are accepted.
   */
  credentialHeaders: readonly string[];
  /** `serverInfo` of MCP, as JSON text. */
  info: string;
  /** User agent of its upstream requests. */
  userAgent: string;
  secrets: ReadonlyMap<string, DecryptedSecret>;
  /** Names of the values that each person brings. No secret stands in for them. */
  personalNames: ReadonlySet<string>;
  /** Token requests for client credentials, created by the first calls. */
  tokenRequests: Map<Authentication, TokenRequest>;
  limits: { server: CallLimits; workspace: CallLimits };
  /** End of call capturing, in epoch ms. Undefined if captures are disabled. */
  captureUntil: number | undefined;
  getToolsJson: () => Buffer;
  toolNames: readonly string[];
  /** Returns a tool by its name. Undefined for disabled tools too. */
  getTool: (name: string) => HostedTool | undefined;
  /** Returns the mirrored arguments of a tool, or undefined if there is no such tool. */
  getMirroredArguments: (name: string) => readonly MirroredArgument[] | undefined;
  /** The searchable tools, in search mode. */
  catalog: ToolCatalog | undefined;
  /** Instructions that agents read first. */
  instructions: string | undefined;
  /** True if results have a size limit, so that the tool `read_more` returns their remainder. */
  hasReadMoreTool: boolean;
  /** Returns a view of the server by its name. Undefined if there is none, and for views. */
  findView: (name: string) => HostedServer | undefined;
};

/** The name of a view, and the server that contains it. */
export type ViewOf = { name: string; server: HostedServer };

export type HostedTool = {
  name: string;
  /** Reason why the tool cannot be called, if its rendered configuration exceeds a limit. */
  configError: string | undefined;
  request: RequestTemplate;
  /** Arguments that take a file, as Base64 or as a file URL. */
  fileArguments: readonly string[];
  args: ArgumentRules;
  /** Credentials with which the service obtains tokens. Empty for most tools. */
  clientCredentials: readonly Authentication[];
  responseRules: ResponseRules;
  /** JSON texts for threads, created on first use. */
  threadJson: { toInputSchema: () => string; toResponseRules: () => string };
  /** Digests the credentials of a request. */
  hashCredentials: CredentialDigest;
  timeoutMs: number;
  limitBytes: number;
  followsRedirects: boolean;
  /** Returns true if, according to its hints, repeating a request has no additional effect. */
  isRepeatable: () => boolean;
  mirroredArguments: readonly MirroredArgument[];
};

/** A server as stored, before it is compiled. */
export type ServerDefinition = {
  id: string;
  workspaceId: string;
  slug: string;
  version: number;
  config: ServerConfig;
  captureUntil?: number | undefined;
  /** See `HostedServer`. Empty if it is not needed for comparison. */
  source?: string;
};

export const defaultLimitBytes = 10 * 1024 * 1024;

export function compileServer(
  definition: ServerDefinition,
  secrets: ReadonlyMap<string, DecryptedSecret>,
  limits: HostedServer['limits'],
  userAgent: string,
): HostedServer {
  const { config } = definition;
  const access = getAccess(config);
  const renderedTools = createRenderedTools(config);
  let viewCache: ViewCache | undefined;
  const server: HostedServer = {
    source: definition.source ?? '',
    id: definition.id,
    workspaceId: definition.workspaceId,
    slug: definition.slug,
    view: undefined,
    config,
    access,
    interpolation: renderedTools.interpolation,
    credentialHeaders: getCallerHeaders(config.authentication, access),
    info: formatServerInfo(definition, config),
    userAgent,
    secrets,
    personalNames: getPersonalNames(config),
    tokenRequests: new Map(),
    limits,
    captureUntil: definition.captureUntil,
    ...compileTools(
      config,
      (sourceTool) => compileTool(renderedTools.renderForServer(sourceTool), { config, access, userAgent }),
      new Map(),
    ),
    findView(name) {
      const view = config.views && Object.hasOwn(config.views, name) ? config.views[name] : undefined;
      if (!view) return undefined;
      viewCache ??= createViewCache(config);
      const { version } = definition;
      const newView = { name, view, version, userAgent, renderedTools, viewCache };
      return viewCache.getView(name, view, () => compileView(server, newView));
    },
  };
  return server;
}

function getCallerHeaders(authentication: Authentications | undefined, access: Access): string[] {
  const credentials = toCredentialList(authentication);
  const callerCredential = credentials.find((credential) => !isStored(credential)) ?? credentials[0];
  const name = callerCredential && credentialHeader(callerCredential)?.toLowerCase();
  const acceptsKeys = access === 'api_key' || access === 'login' || (access === 'caller_token' && !callerCredential);
  return [...(name === undefined || name === 'authorization' ? [] : [name]), ...(acceptsKeys ? [apiKeyHeader] : [])];
}

/** Returns the address below `/mcp/`: the slug, or `slug/view`. */
export function getServerAddress({ slug, view }: HostedServer): string {
  return view === undefined ? slug : `${slug}/${view.name}`;
}

/** Returns the server itself, or its view with this name. Undefined if there is no such view. */
export function getServerOrView(server: HostedServer | undefined, view: string | undefined): HostedServer | undefined {
  return view === undefined ? server : server?.findView(view);
}

/** Creates the failure of a call to a tool that could not be rendered. */
export function toConfigFailure(configError: string): ToolFailure {
  return recordableFailure(
    'invalid_arguments',
    `this tool cannot be called until its configuration is corrected: ${configError}`,
  );
}

type ViewSource = {
  name: string;
  view: View;
  version: number;
  userAgent: string;
  renderedTools: RenderedTools;
  viewCache: ViewCache;
};

/**
 * Compiles a view. It has the access, secrets, and limits of its server, and shares the server's compiled tools. Only
 * tools with fixed arguments are compiled for the view.
 */
function compileView(
  server: HostedServer,
  { name, view, version, userAgent, renderedTools, viewCache }: ViewSource,
): HostedServer {
  const config = createViewConfig(server.config, view);
  const { access } = server;
  const fixedByTool = new Map(
    (view.tools ?? []).map(toViewTool).map((viewTool) => [viewTool.name, viewTool.arguments ?? {}]),
  );
  const serverTools = new Map(server.config.tools.map((tool) => [tool.name, tool]));
  const compile = (tool: Tool): HostedTool => {
    const fixedArguments = fixedByTool.get(tool.name) ?? {};
    const names = Object.keys(fixedArguments);
    if (names.length === 0) return server.getTool(tool.name) as HostedTool;
    const compileFixed = () => {
      const compiled = compileTool(renderedTools.renderForView(tool, fixedArguments), { config, access, userAgent });
      return { ...compiled, args: rejectFixedArguments(compiled.args, names) };
    };
    return viewCache.getTool(name, serverTools.get(tool.name) as Tool, compileFixed);
  };
  return {
    ...server,
    view: { name, server },
    config,
    info: formatServerInfo({ slug: `${server.slug}/${name}`, version }, config),
    ...compileTools(config, compile),
    findView: () => undefined,
  };
}

function formatServerInfo(
  { slug, version }: { slug: string; version: number },
  { name, icons, website_url: websiteUrl }: ServerConfig,
): string {
  return JSON.stringify({ name: slug, title: name.toWellFormed(), version: String(version), icons, websiteUrl });
}

type CompiledTools = Pick<
  HostedServer,
  'getToolsJson' | 'toolNames' | 'getTool' | 'getMirroredArguments' | 'catalog' | 'instructions' | 'hasReadMoreTool'
>;

/** Compiles the tools of a server or view. `cache` caches compiled tools by name; absent if `compile` caches them. */
function compileTools(
  config: ServerConfig,
  compile: (tool: Tool) => HostedTool,
  cache?: Map<string, HostedTool>,
): CompiledTools {
  const { description } = config;
  const searchModeInstructions =
    description === undefined ? searchInstructions : `${description}\n\n${searchInstructions}`;
  const byName = new Map(getEnabledTools(config).map((entry) => [entry.name, entry]));
  const catalog = config.tool_mode === 'search' ? createCatalog(config) : undefined;
  const builtInNames = [...getReservedToolNames(config)];
  let toolsJson: Buffer | undefined;
  const getTool = (name: string) => {
    const cached = cache?.get(name);
    if (cached) return cached;
    const tool = byName.get(name);
    const compiled = tool && compile(tool);
    if (compiled) cache?.set(name, compiled);
    return compiled;
  };
  return {
    getToolsJson: () => {
      toolsJson ??= toWellFormedJson(Buffer.from(JSON.stringify(createToolList(config))));
      return toolsJson;
    },
    toolNames: [...builtInNames, ...byName.keys()],
    getTool,
    getMirroredArguments: (name) => {
      const tool = catalog?.isListed(name) === false ? undefined : getTool(name);
      if (tool) return tool.mirroredArguments;
      // Clients mirror only arguments that a listed tool declares.
      return builtInNames.includes(name) || (catalog && byName.has(name)) ? [] : undefined;
    },
    catalog,
    instructions: catalog ? searchModeInstructions : description,
    hasReadMoreTool: hasResponseLimit(config),
  };
}

type ServerContext = { config: ServerConfig; access: Access; userAgent: string };

function compileTool({ tool, configError }: RenderedTool, { config, access, userAgent }: ServerContext): HostedTool {
  const schema = toJsonSchema(tool.input_schema);
  const rulesSource = toResponseRulesSource(tool, config.max_response_tokens);
  const authentication = getToolAuthentication(config, tool);
  const { token_prefix: tokenPrefix } = config.oauth ?? {};
  const request = compileRequest(tool, authentication, { userAgent, tokenPrefix, originHosts: getOriginHosts(config) });
  return {
    name: tool.name,
    configError,
    request,
    fileArguments: request.body.arguments.filter(({ isBase64 }) => isBase64).map(({ name }) => name),
    args: compileArguments(tool.input_schema, schema, getAnnotations(tool).readOnlyHint === true),
    clientCredentials: request.credentials.filter(({ type }) => type === 'ClientCredentials'),
    responseRules: compileResponseRules(rulesSource),
    threadJson: {
      toInputSchema: createLazyText(() => JSON.stringify(schema)),
      toResponseRules: createLazyText(() => JSON.stringify(rulesSource)),
    },
    hashCredentials: access === 'api_key' ? createCachedDigest() : digestCredentials,
    timeoutMs: tool.timeout_ms,
    limitBytes: tool.response_limit_bytes ?? defaultLimitBytes,
    followsRedirects: tool.redirects === 'follow',
    isRepeatable() {
      const { readOnlyHint, idempotentHint } = getAnnotations(tool);
      return readOnlyHint === true || idempotentHint === true;
    },
    mirroredArguments: findMirroredArguments(schema, []),
  };
}

function createLazyText(createText: () => string): () => string {
  let text: string | undefined;
  return () => {
    text ??= createText();
    return text;
  };
}

/** Finds arguments with `x-mcp-header`, which clients repeat in a header. Only `properties` can declare it. */
function findMirroredArguments(schema: JsonSchema, path: readonly string[]): MirroredArgument[] {
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, property]) => {
    if (typeof property !== 'object' || property === null) return [];
    const header = property['x-mcp-header'];
    const ownArgument: MirroredArgument[] =
      typeof header === 'string'
        ? [{ header, path: [...path, name], type: property.type as MirroredArgument['type'] }]
        : [];
    return [...ownArgument, ...findMirroredArguments(property, [...path, name])];
  });
}

/** Digests the credentials that a request sends. Returns an empty string if it sends none. */
type CredentialDigest = (credentials: readonly string[]) => string;

const digestCredentials: CredentialDigest = (credentials) =>
  // A header cannot contain a line break, so different credential lists never join to the same text.
  credentials.length === 0 ? '' : hash('sha256', credentials.join('\n'), 'base64url');

/** Creates a digest function for stored credentials, which are the same in every call. It caches its last result. */
function createCachedDigest(): CredentialDigest {
  let lastCredentials: readonly string[] = [];
  let digest = '';
  return (credentials) => {
    const isSame =
      credentials.length === lastCredentials.length &&
      credentials.every((value, index) => value === lastCredentials[index]);
    if (isSame) return digest;
    lastCredentials = [...credentials];
    digest = digestCredentials(credentials);
    return digest;
  };
}

/** Cache of a server's compiled views, and of the tools that are compiled for them. */
type ViewCache = {
  getView(name: string, view: View, compile: () => HostedServer): HostedServer;
  getTool(viewName: string, tool: Tool, compile: () => HostedTool): HostedTool;
};

/**
 * Creates the cache of views. Up to twenty views may fix an argument of the same large tool, so they share the space
 * that the server's size includes for them. Entries that exceed it are evicted, least recently used first, and compiled
 * again when needed.
 */
function createViewCache(config: ServerConfig): ViewCache {
  const sizes = createViewSizer(config);
  const cache = new LRUCache<string, object>({ maxSize: sizes.getMaxRetainedSize() });
  function getOrCompile<Compiled extends object>(key: string, size: () => number, compile: () => Compiled): Compiled {
    const cached = cache.get(key) as Compiled | undefined;
    if (cached) return cached;
    const compiled = compile();
    cache.set(key, compiled, { size: size() });
    return compiled;
  }
  return {
    getView: (name, view, compile) => getOrCompile(name, () => sizes.getViewSize(view), compile),
    getTool: (viewName, tool, compile) =>
      getOrCompile(`${viewName}/${tool.name}`, () => sizes.getToolSize(tool), compile),
  };
}
