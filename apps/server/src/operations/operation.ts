import type { KeyScope, Role, Scope } from '@toolhost/credentials/credential';
import type { Random } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import type { LargeValue } from '@toolhost/json/large-value';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import type { CallLimits, CircuitState, LimitedKey, LimitUse } from '@toolhost/limits/call-limits';
import type { ContentBlock } from '@toolhost/mcp-protocol/mcp';
import type { PlannedImport } from '@toolhost/openapi-to-tools/import-document';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import type { ReimportReport, ReportKind } from '@toolhost/openapi-to-tools/plan-outline';
import type { ImportedServer, ReimportChoices, ReimportResult } from '@toolhost/openapi-to-tools/reimport/reimport';
import { checkUrl, parseEgressAllow } from '@toolhost/safe-http/egress';
import type { WebhookMessage, WebhookTarget } from '@toolhost/safe-http/webhook';
import type { UpstreamRequest } from '@toolhost/tool-config/request/upstream-request';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { ConfigRules } from '@toolhost/tool-config/server-config';
import type { z } from 'zod';
import type { ModelProgress, ModelReply } from '../model.ts';
import type { Quotas } from '../quotas.ts';
import type { CapturedResponse } from '../store/calls/captures.ts';
import type { Db } from '../store/db.ts';
import type { CallRow } from '../store/schema.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { Validators } from '../store/servers/imports.ts';
import type { ExposedTools, ModelRequest, ServedVariant, TestCall } from '../try-out.ts';
import type { CheckConfigOnThread, CheckedConfig } from './check-config.ts';
import { describeAsJsonSchema } from './describe.ts';
import { operationRoutes, operatorRoutes, type Route } from './routes.ts';

/** The caller of an operation: a key, a person, or the operator at the machine. */
export type Actor = {
  kind: 'api_key' | 'user' | 'operator';
  id: string;
  workspaceId: string;
  /** The person themselves, or the one who created the key. Undefined for the operator. */
  userId?: string | undefined;
  scopes: readonly KeyScope[];
  /** Slugs of the servers that the actor is limited to, or undefined for the whole workspace. */
  servers: readonly string[] | undefined;
  /** Limits of the API key that makes the calls, and of the keys that it was created with. */
  callLimits?: readonly LimitedKey[] | undefined;
  /** Role and session hash of a person who is signed in to the dashboard. */
  role?: Role;
  sessionHash?: string;
  /** Login of a person at the management server. */
  grantId?: string;
};

/** Result of a trial call as the agent would see it, with its call record and its request. */
type TrialCallResult = {
  is_error: boolean;
  content: ContentBlock[];
  structured_content?: unknown;
  estimated_tokens: number;
  /** Description of the part of a long result that is missing here. */
  left_out?: string;
  record: CallRow | undefined;
  /** The request with masked credentials; undefined if the arguments do not produce one. */
  request: UpstreamRequest | undefined;
  /** The upstream response without credentials; undefined if there was none. */
  response: CapturedResponse | undefined;
};

/** Current usage of the limits in this process. */
export type CurrentUsage = {
  getServerUsage: (serverId: string) => LimitUse;
  getWorkspaceUsage: (workspaceId: string) => LimitUse;
  getCircuit: (workspaceId: string, origin: string) => CircuitState;
};

/** Returns the actor for the operator at the machine, who may do everything in a workspace. */
export function createOperatorActor(workspaceId: string): Actor {
  return { kind: 'operator', id: 'operator', workspaceId, scopes: ['manage', 'call'], servers: undefined };
}

/** Notifies webhooks and people. Each method returns why the notification did not arrive, or undefined. */
export type Notifier = {
  sendWebhook(target: WebhookTarget, message: WebhookMessage): Promise<string | undefined>;
  /** Undefined if the operator has configured no mail server. */
  sendMail: ((message: { to: string; subject: string; text: string }) => Promise<string | undefined>) | undefined;
};

/** Services that only a process that serves calls has. */
export type Serving = {
  currentUsage: CurrentUsage;
  /** Calls a tool with a real upstream request. */
  callTool: (call: TestCall) => Promise<TrialCallResult>;
  getOfferedTools: (server: ServedVariant) => Promise<ExposedTools>;
  /** Sends one request to a model, within the call limits, and records it as a call. */
  askModel: (request: ModelRequest) => Promise<ModelReply>;
  /** Builds the request of a call with masked credentials without sending it. Returns why the call would be refused. */
  previewCall: (
    target: { slug: string; view: string | undefined; tool: string },
    args: Arguments,
  ) => Promise<{ request: UpstreamRequest; refusal: string | undefined }>;
  /** Repeats the first steps of a client at a hosted server or at one of its views. */
  probeConnection: (slug: string, view: string | undefined) => Promise<ConnectionProbe>;
  /** Redeems a trial login, and ends it. */
  finishLogin: (attempt: LoginAttempt) => Promise<TrialLoginResult>;
  /** Writes the pending call records, so that a list includes them. */
  flushCalls: () => Promise<void>;
  notifier: Notifier;
};

/** Dependencies of operations, provided by `app/`. */
export type OperationDeps = {
  keyring: Keyring;
  rules: ConfigRules;
  baseUrl: string;
  serverUrl: (slug: string) => string;
  /** Returns the URL of a server on its own host, or undefined if the operator has configured no such hosts. */
  serverHostUrl: (slug: string) => string | undefined;
  callbackUrl: (slug: string) => string;
  /** Workspace that has the example server, in local mode. */
  exampleWorkspaceId: string | undefined;
  callRetentionDays: number;
  auditRetentionDays: number;
  now: () => number;
  random: Random;
  /** Limits that apply where none were set, and the limit per credential. 0 means no limit. */
  defaultLimits: CallLimits & { concurrentPerKey: number };
  /** Quotas that apply where none were set. */
  defaultQuotas: Quotas;
  /** Undefined in the command line, which checks a configuration itself because it may block. */
  checkConfigOnThread: CheckConfigOnThread | undefined;
  /** Reads and plans API descriptions. */
  importer: Importer;
  /** Undefined in a process that serves no calls. */
  serving: Serving | undefined;
};

/**
 * Connection to a waiting caller. The signal aborts when the caller disconnects. `onProgress` reports progress to a
 * caller that reads the response while it is generated.
 */
export type Stream = { onProgress?: (progress: ModelProgress) => void; signal: AbortSignal };

/**
 * Result of `prepare`: the version of the server that it is for, which is undefined for a new server, and the check of
 * its configuration, if it is large.
 */
export type Prepared = { version: number | undefined; check?: CheckedConfig };

/** Input of every operation besides its own: who runs it, on which database, and with which dependencies. */
export type Context<P extends Prepared | undefined = Prepared | undefined> = {
  /** In an operation with the effect `write`, its transaction. */
  db: Db;
  actor: Actor;
  requestId: string;
  /** Result of `prepare`; undefined if there is none. */
  prepared: P;
  /**
   * Waits until there is memory for a configuration of this size. Undefined in a transaction, which must not wait.
   * @throws AppError tooMany
   */
  reserveMemory: ((bytes: number) => Promise<void>) | undefined;
  /** Present if the caller reads the response while it is generated. */
  stream?: Stream | undefined;
  /** Quotas of the workspace in an operation with the effect `write`; the default quotas in any other. */
  quotas: Quotas;
} & OperationDeps;

/** Returns the services of a process that serves calls. @throws AppError unavailable in the command line */
export function requireServing({ serving }: Pick<OperationDeps, 'serving'>): Serving {
  if (serving) return serving;
  throw new AppError('unavailable', 'this operation needs a running service; use it over the REST API or MCP');
}

/**
 * Audit log details of an operation, for the actor's workspace or another one. They never contain a secret. Email
 * addresses and names of people are in `people`, which only people can see.
 */
type AuditEntry = {
  workspaceId?: string;
  target?: string;
  detail?: { [key: string]: unknown };
  people?: { [key: string]: unknown };
};

/**
 * An operation of the system. REST, OpenAPI, the management MCP server, the command line, and the reference pages are
 * derived from it, and `runOperation` applies the same checks for all of them.
 */
export type Operation<
  Name extends string = string,
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodObject = z.ZodObject,
> = Declaration<Name, Input, Output, Prepared | undefined> & {
  route: Route;
  /** Returns the JSON Schema of the input, which is created on first use. */
  inputSchema(): JsonSchema;
};

/** Output type of an operation. */
export type OperationOutput<Op extends Operation> = z.input<Op['output']>;

/**
 * An operation as its file declares it. `run` and the other functions are methods, so that operations of all types fit
 * into one list.
 */
type Declaration<
  Name extends string,
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  P extends Prepared | undefined,
> = {
  name: Name;
  summary: string;
  /** More text for agents and for the reference pages. */
  description?: string;
  scope: Scope;
  /** `write` runs in a transaction and is audited; `call` sends a request to an upstream. */
  effect: 'read' | 'write' | 'call';
  /** Waits for a model. Few such requests run simultaneously, and each can stream the model's output to the caller. */
  callsModel?: boolean;
  /** Reads many rows, and therefore runs separately from all other operations, for a share of the time. */
  isReport?: boolean;
  destructive?: boolean;
  /** Restricts the operation to people in the dashboard; `owner` restricts it to owners of the workspace. */
  dashboardRole?: 'any' | 'owner';
  /** Creates a credential, which would outlive the login that it was created with. */
  createsCredential?: boolean;
  /** True if the management server offers the operation as a tool. */
  isTool: boolean;
  input: Input;
  /**
   * `run` gets the raw input and validates it itself, because it can report more problems in one pass than the schema.
   */
  validatesInput?: boolean;
  output: Output;
  /**
   * Field that may be a `LargeValue`. With `characters`, it is a text up to that length over REST. With
   * `validatesInput`, every field may be a `LargeValue`.
   */
  longField?: { field: string; characters?: number };
  /**
   * Work before the transaction of a `write`, which must not wait for threads or other servers. Repeated once if `run`
   * throws `StalePreparation`.
   */
  prepare?(context: Context<undefined>, input: z.output<Input>): Promise<P>;
  run(context: Context<P>, input: z.output<Input>): Promise<z.input<Output>>;
  /** Returns true if nothing was changed, so that there is nothing to audit. */
  isUnchanged?(output: z.input<Output>): boolean;
  audit?(input: z.output<Input>, output: z.input<Output>): AuditEntry;
  /** File that the REST API returns instead of JSON. */
  file?: { mediaType: string; name: string; toText(output: z.input<Output>): string };
  /** Formats the output as text for agents, instead of JSON. */
  toAgentText?(output: z.input<Output>): string;
};

const routes = { ...operationRoutes, ...operatorRoutes };

/** Declares an operation. Its name must have a route. */
export function operation<
  Name extends keyof typeof routes,
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  P extends Prepared | undefined = undefined,
>(declaration: Declaration<Name, Input, Output, P>): Operation<Name, Input, Output> {
  let schema: JsonSchema | undefined;
  const inputSchema = () => {
    schema ??= describeAsJsonSchema(declaration.input, 'input');
    return schema;
  };
  return { ...declaration, route: routes[declaration.name], inputSchema };
}

/**
 * Settings of the deployment that restrict configurations, as plain data. `egressAllow` has the format of EGRESS_ALLOW.
 */
export type RuleSource = { managementSlug: string; egressAllow: string; ownBase: string; acceptsFormPost: boolean };

export function createConfigRules({ managementSlug, egressAllow, ownBase, acceptsFormPost }: RuleSource): ConfigRules {
  const allow = parseEgressAllow(egressAllow);
  return { managementSlug, acceptsFormPost, urlProblem: (url) => checkUrl(url, allow, ownBase) };
}

/** Headers for fetching a description, by name. */
export type DescriptionHeaders = Readonly<Record<string, string>>;

/** A document to import: its text, or the URL to fetch it from. */
export type ImportRequest = {
  text: string | LargeValue | undefined;
  url: string | undefined;
  /** Headers for fetching `url`. */
  headers?: DescriptionHeaders | undefined;
  choices: ImportChoices;
  report: ReportKind;
};

/** A document to re-import into a server. */
export type ReimportRequest = Pick<ImportRequest, 'text' | 'url' | 'headers' | 'choices'> & {
  imported: ImportedServer;
  reimport: ReimportChoices;
};

/** A document to compare with the last import, and the state that is known from earlier checks. */
export type CheckRequest = {
  url: string;
  headers: DescriptionHeaders | undefined;
  choices: ImportChoices;
  imported: ImportedServer;
  lastKnown: { documentHash?: string | undefined; validators?: Validators | undefined };
  /** Ends the check when the process stops. */
  signal?: AbortSignal | undefined;
};

/** Result of a check. `report` is missing if the document is already known or is the one from the last import. */
export type CheckedDocument = {
  documentHash: string;
  validators: Validators | undefined;
  report?: ReimportReport | undefined;
};

/**
 * Fetches the document and its files if necessary, and parses it on a thread.
 * @throws AppError invalid, tooLarge, tooMany, unavailable
 */
export type Importer = {
  plan(request: ImportRequest, workspaceId: string): Promise<PlannedImport>;
  reimport(request: ReimportRequest, workspaceId: string): Promise<ReimportResult>;
  check(request: CheckRequest, workspaceId: string): Promise<CheckedDocument>;
};

export type ProbeJson = { [key: string]: unknown };

/** Responses to a client that knows only the URL of a server. */
export type ConnectionProbe = {
  /** Response to a request without a credential; undefined if the request was accepted. */
  refusal: { status: number; challenge: string } | undefined;
  /** Metadata of the resource that the challenge names, and of the authorization server that the resource names. */
  resourceMetadata: ProbeJson | undefined;
  issuerMetadata: ProbeJson | undefined;
  /** JSON-RPC responses to the first requests of stateful and of stateless clients. */
  responses: { initialize: ProbeJson; discover: ProbeJson; tools: ProbeJson; statelessTools: ProbeJson };
  /** Known clients whose registration is refused, with the reason. */
  refusedClients: { client: string; reason: string }[];
  /** Known clients that `login.clients` does not let in when they register. */
  unlistedClients: readonly string[];
};

/** Trial login as it returns to the client: the code, and the verifier and redirect URI that the client stored. */
export type LoginAttempt = {
  slug: string;
  clientId: string;
  code: string;
  verifier: string;
  redirectUri: string;
  requestId: string;
};

/**
 * Description of a login, without its tokens: those of the provider, or at a server without a provider the identity of
 * the person. A field is undefined if the provider did not state it.
 */
export type TrialLoginResult = {
  scope: string | undefined;
  expiresInS: number | undefined;
  isRenewable: boolean;
  person: string | undefined;
};
