import type { z } from 'zod';
import type { ConfigRules } from '../domain/config/server-config.ts';
import type { KeyScope, Role, Scope } from '../domain/credentials/credential.ts';
import type { Random } from '../domain/ids.ts';
import type { LongValue } from '../domain/json/long-value.ts';
import type { CallLimits, CircuitState, LimitedKey, LimitUse } from '../domain/limits.ts';
import type { ContentBlock } from '../domain/mcp.ts';
import type { ModelAnswer, ModelProgress } from '../domain/model.ts';
import type { Quotas } from '../domain/quotas.ts';
import type { Arguments } from '../domain/request/sent-argument.ts';
import type { UpstreamRequest } from '../domain/request/upstream-request.ts';
import type { JsonSchema } from '../domain/schema/json-schema.ts';
import type { AskedModel, OfferedTools, Served, TryOutCall } from '../domain/try-out.ts';
import { AppError } from '../errors.ts';
import type { AgainChoices, ImportedAgain, ImportedServer } from '../import/again/import-again.ts';
import type { PlannedImport } from '../import/import-document.ts';
import type { ImportChoices } from '../import/plan/choices.ts';
import type { AgainReport, ReportKind } from '../import/plan-outline.ts';
import { parseEgressAllow, urlProblem } from '../outbound/egress.ts';
import type { WebhookMessage, WebhookTarget } from '../outbound/webhook.ts';
import type { CapturedResponse } from '../store/calls/captures.ts';
import type { Db } from '../store/db.ts';
import type { CallRow } from '../store/schema.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { Validators } from '../store/servers/imports.ts';
import type { CheckConfigOnThread, Precheck } from './check-config.ts';
import { jsonSchemaOf } from './describe.ts';
import { operationRoutes, operatorRoutes, type Route } from './routes.ts';

/** The caller of an operation: a key, a person, or the operator at the machine. */
export type Actor = {
  kind: 'api_key' | 'user' | 'operator';
  id: string;
  workspaceId: string;
  scopes: readonly KeyScope[];
  /** Slugs of the servers that the actor is limited to, or undefined for the whole workspace. */
  servers: readonly string[] | undefined;
  /** An API key and those it was made with, as far as their calls have limits. */
  callLimits?: readonly LimitedKey[] | undefined;
  /** Role and session hash of a person in the dashboard. */
  role?: Role;
  sessionHash?: string;
  /** The login of a person at the management server. */
  grantId?: string;
};

/** Result of a trial call as the agent would see it, with its record and request. */
type TriedCall = {
  is_error: boolean;
  content: ContentBlock[];
  structured_content?: unknown;
  estimated_tokens: number;
  /** Description of the missing part of a long result. */
  left_out?: string;
  record: CallRow | undefined;
  /** The request with masked credentials; undefined when none could be built from the arguments. */
  request: UpstreamRequest | undefined;
  /** The answer of the upstream without credentials; undefined when there was none. */
  response: CapturedResponse | undefined;
};

/** Present use of the limits in this process. */
export type PresentUse = {
  ofServer: (serverId: string) => LimitUse;
  ofWorkspace: (workspaceId: string) => LimitUse;
  circuitOf: (workspaceId: string, origin: string) => CircuitState;
};

/** The operator at the machine itself, who may do everything in a workspace. */
export function operatorOf(workspaceId: string): Actor {
  return { kind: 'operator', id: 'operator', workspaceId, scopes: ['manage', 'call'], servers: undefined };
}

/** Tells a webhook or a person. Gives why it did not arrive, or undefined. */
export type Telling = {
  webhook(target: WebhookTarget, message: WebhookMessage): Promise<string | undefined>;
  /** Undefined where the operator has set no mail server. */
  mail: ((message: { to: string; subject: string; text: string }) => Promise<string | undefined>) | undefined;
};

/** Abilities of a process that serves calls. */
export type Serving = {
  presentUse: PresentUse;
  /** Calls a tool with a real request. */
  callTool: (call: TryOutCall) => Promise<TriedCall>;
  offeredTools: (served: Served) => Promise<OfferedTools>;
  /** Asks a model once, within the limits of calls, and records the question. */
  askModel: (asked: AskedModel) => Promise<ModelAnswer>;
  /** Builds a call's request with its credentials masked and sends nothing; says why the call would be refused. */
  previewCall: (
    of: { slug: string; view: string | undefined; tool: string },
    args: Arguments,
  ) => Promise<{ request: UpstreamRequest; refused: string | undefined }>;
  /** Repeats the first steps of a client at a hosted server, or at a view of it. */
  probeConnection: (slug: string, view: string | undefined) => Promise<ConnectionProbe>;
  /** Redeems a trial login, and ends it. */
  finishLogin: (attempt: LoginAttempt) => Promise<GivenLogin>;
  /** Writes the waiting call records, so that a list shows them. */
  flushCalls: () => Promise<void>;
  telling: Telling;
};

/** Dependencies of operations, provided by `app/`. */
export type Parts = {
  keyring: Keyring;
  rules: ConfigRules;
  baseUrl: string;
  serverUrl: (slug: string) => string;
  /** The address of a server on a host of its own, where the operator has such hosts. */
  ownAddress: (slug: string) => string | undefined;
  callbackUrl: (slug: string) => string;
  callRetentionDays: number;
  auditRetentionDays: number;
  now: () => number;
  random: Random;
  /** Limits where none were set, and the limit of one credential. 0 means no limit. */
  defaultLimits: CallLimits & { concurrentPerKey: number };
  /** Quotas where none were set. */
  defaultQuotas: Quotas;
  /** Undefined in the command line, which may block while it checks a configuration itself. */
  checkConfigOnThread: CheckConfigOnThread | undefined;
  /** Reads and plans API descriptions. */
  importing: Importing;
  /** Undefined in a process that serves no calls. */
  serving: Serving | undefined;
};

/** A caller who waits: the signal is aborted when they leave, and `tell` is for who reads the answer as it is made. */
export type Stream = { tell?: (progress: ModelProgress) => void; signal: AbortSignal };

export type Context = {
  db: Db;
  actor: Actor;
  requestId: string;
  /** The result of `precheck`. */
  precheck?: Precheck | undefined;
  /** The result of `prepare`. */
  prepared?: unknown;
  /** Waits, before its transaction, until there is memory for a configuration of so many bytes. @throws AppError tooMany */
  room: (bytes: number) => Promise<void>;
  /** Present where the caller reads the answer while it comes. */
  stream?: Stream | undefined;
  /** The quotas of the workspace in an operation with the effect `write`; the defaults in any other. */
  quotas: Quotas;
} & Parts;

/** @throws AppError unavailable in the command line, which serves no calls */
export function servingOf({ serving }: Pick<Parts, 'serving'>): Serving {
  if (serving) return serving;
  throw new AppError('unavailable', 'this needs the running service');
}

/**
 * Details of an operation for the audit log, of the actor's workspace or another; never a secret. Addresses of people
 * stand in `people`, which only people see.
 */
type AuditEntry = {
  workspaceId?: string;
  target?: string;
  detail?: { [key: string]: unknown };
  people?: { [key: string]: unknown };
};

/**
 * An operation of the system. REST, OpenAPI, the management MCP server, the command line and the reference pages are
 * derived from it, and `runOperation` applies the same checks for all of them.
 */
export type Operation<
  Name extends string = string,
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodObject = z.ZodObject,
> = Declaration<Name, Input, Output> & {
  route: Route;
  /** The JSON Schema of its input, made when it is first needed. */
  inputSchema(): JsonSchema;
};

/** Output type of an operation. */
export type OutputOf<Op extends Operation> = z.input<Op['output']>;

/** An operation as its file declares it. `run` and the others are methods, so that operations of all types fit one list. */
type Declaration<Name extends string, Input extends z.ZodObject, Output extends z.ZodObject> = {
  name: Name;
  summary: string;
  /** Further text for agents and for the reference pages. */
  description?: string;
  scope: Scope;
  /** `write` runs in a transaction and is audited, `call` reaches an upstream. */
  effect: 'read' | 'write' | 'call';
  /** Waits for a model, of which few may be asked at once; tells the caller its words meanwhile. */
  asksModel?: boolean;
  /** Reads many rows, and therefore runs beside all others, for a share of the time. */
  isReport?: boolean;
  destructive?: boolean;
  /** Restricts the operation to people in the dashboard, and with `owner` to owners of the workspace. */
  people?: 'any' | 'owner';
  /** Makes a credential, which would outlive the login that it was made with. */
  makesCredential?: boolean;
  /** Whether it is a tool of the management server. */
  isTool: boolean;
  input: Input;
  /** `run` gets the raw input and validates it itself, because it can report more problems at once than the schema. */
  validatesInput?: boolean;
  output: Output;
  /** A field that may be a `LongValue`; over REST a text of so many characters. With `validatesInput` all fields may be. */
  long?: { field: string; characters?: number };
  /** Work before the transaction of a `write`; its result becomes `context.prepared`. */
  prepare?(context: Context, input: z.output<Input>): Promise<unknown>;
  /** Checks a large configuration before the transaction of a `write`. */
  precheck?(context: Context, input: z.output<Input>): Promise<Precheck | undefined>;
  run(context: Context, input: z.output<Input>): Promise<z.input<Output>>;
  /** Whether nothing was changed, so that there is nothing to audit. */
  isUnchanged?(output: z.input<Output>): boolean;
  audit?(input: z.output<Input>, output: z.input<Output>): AuditEntry;
  /** The REST API answers with this file instead of JSON. */
  file?: { mediaType: string; name: string; text(output: z.input<Output>): string };
  /** Text for agents, instead of the JSON. */
  say?(output: z.input<Output>): string;
};

const routes = { ...operationRoutes, ...operatorRoutes };

/** Declares an operation under a name that has a route. */
export function operation<Name extends keyof typeof routes, Input extends z.ZodObject, Output extends z.ZodObject>(
  declaration: Declaration<Name, Input, Output>,
): Operation<Name, Input, Output> {
  let schema: JsonSchema | undefined;
  const inputSchema = () => {
    schema ??= jsonSchemaOf(declaration.input, 'input');
    return schema;
  };
  return { ...declaration, route: routes[declaration.name], inputSchema };
}

/** Settings of the deployment that restrict configurations, as plain data. `egressAllow` has the form of EGRESS_ALLOW. */
export type RuleSource = { managementSlug: string; egressAllow: string; own: string };

export function rulesOf({ managementSlug, egressAllow, own }: RuleSource): ConfigRules {
  const allow = parseEgressAllow(egressAllow);
  return { managementSlug, urlProblem: (url) => urlProblem(url, allow, own) };
}

/** Headers for fetching a description, by their names. */
export type DescriptionHeaders = Readonly<Record<string, string>>;

/** A document to import: its text, or else the address that it is fetched from. */
export type ImportRequest = {
  text: string | LongValue | undefined;
  url: string | undefined;
  /** For fetching it. */
  headers?: DescriptionHeaders | undefined;
  choices: ImportChoices;
  report: ReportKind;
};

/** A document to import again into a server. */
export type AgainRequest = Pick<ImportRequest, 'text' | 'url' | 'headers' | 'choices'> & {
  imported: ImportedServer;
  again: AgainChoices;
};

/** A document to compare with the last import, and what is known of it. */
export type CheckRequest = {
  url: string;
  headers: DescriptionHeaders | undefined;
  choices: ImportChoices;
  imported: ImportedServer;
  known: { documentHash?: string | undefined; validators?: Validators | undefined };
  /** Ends the check when the process stops. */
  signal?: AbortSignal | undefined;
};

/** `report` is missing for a document that is known, or that is the one of the last import. */
export type CheckedDocument = {
  documentHash: string;
  validators: Validators | undefined;
  report?: AgainReport | undefined;
};

/** Fetches the document and its files if need be, and reads it on a thread. @throws AppError invalid, tooLarge, tooMany, unavailable */
export type Importing = {
  plan(request: ImportRequest, workspaceId: string): Promise<PlannedImport>;
  again(request: AgainRequest, workspaceId: string): Promise<ImportedAgain>;
  check(request: CheckRequest, workspaceId: string): Promise<CheckedDocument>;
};

export type ProbeJson = { [key: string]: unknown };

/** The answers that a client gets when it knows only the address of a server. */
export type ConnectionProbe = {
  /** The answer to a request without a credential; undefined when it was admitted. */
  refusal: { status: number; challenge: string } | undefined;
  /** Metadata of the resource that the challenge names, and of the authorization server that the resource names. */
  resource: ProbeJson | undefined;
  issuer: ProbeJson | undefined;
  /** JSON-RPC answers to the first requests, of legacy and modern clients. */
  answers: { initialize: ProbeJson; discover: ProbeJson; tools: ProbeJson; modernTools: ProbeJson };
  /** Known clients whose registration is refused, and why. */
  refusedClients: { client: string; reason: string }[];
};

/** A trial login at its return to the client: the code, and the verifier and redirect URI that the client kept. */
export type LoginAttempt = {
  slug: string;
  clientId: string;
  code: string;
  verifier: string;
  redirectUri: string;
  requestId: string;
};

/** Answer of the provider without its tokens. A field is undefined when the provider did not state it. */
export type GivenLogin = { scope: string | undefined; expiresInS: number | undefined; isRenewable: boolean };
