import type { z } from 'zod';
import type { ConfigRules } from '../domain/config/server-config.ts';
import type { KeyScope, Role, Scope } from '../domain/credentials/scopes.ts';
import type { Random } from '../domain/ids.ts';
import type { CallLimits, CircuitState, KeyLimits, LimitUse } from '../domain/limits.ts';
import type { ContentBlock } from '../domain/mcp.ts';
import type { Quotas } from '../domain/quotas.ts';
import type { Arguments, UpstreamRequest } from '../domain/request/request-template.ts';
import { AppError } from '../errors.ts';
import type { Db } from '../store/db.ts';
import type { CallRow } from '../store/schema.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { ConnectionProbe } from './connection/connection-probe.ts';
import type { GivenLogin, LoginAttempt } from './connection/login-attempt.ts';
import { operationRoutes, operatorRoutes, type Route } from './routes.ts';
import type { Foreseen, JudgeOnThread } from './servers/judged.ts';

/** Who does something: a key, a person, or the operator at the machine itself. */
export type Actor = {
  kind: 'api_key' | 'user' | 'operator';
  id: string;
  workspaceId: string;
  scopes: readonly KeyScope[];
  /** Slugs that the actor is limited to, or undefined for the whole workspace. */
  servers: readonly string[] | undefined;
  /** What the calls of an API key are limited to. */
  callLimits?: KeyLimits | undefined;
  /** Of a person in the dashboard: their role, and the hash of their session. */
  role?: Role;
  sessionHash?: string;
};

/** What a tried-out call came to, as the agent would see it, and what it took. */
export type TriedCall = {
  is_error: boolean;
  content: ContentBlock[];
  structured_content?: unknown;
  estimated_tokens: number;
  /** What of a long result is missing. */
  left_out?: string;
  record: CallRow | undefined;
  /** With masked credentials; undefined when the arguments do not become a request. */
  request: UpstreamRequest | undefined;
};

/** What goes on under the limits in the process that is asked. */
export type PresentUse = {
  ofServer: (serverId: string) => LimitUse;
  ofWorkspace: (workspaceId: string) => LimitUse;
  circuitOf: (workspaceId: string, origin: string) => CircuitState;
};

/** What only a process that serves calls can do. */
export type Serving = {
  presentUse: PresentUse;
  /** Calls a tool for real. `token` is what the caller of a server that forwards it would send. */
  callTool: (call: {
    slug: string;
    tool: string;
    args: Arguments;
    token: string | undefined;
    /** The API key or the user that asks, and what the key is limited to. */
    actorId: string;
    limits: KeyLimits | undefined;
    requestId: string;
  }) => Promise<TriedCall>;
  /** Builds a call's request with its credentials masked and sends nothing. */
  previewCall: (slug: string, tool: string, args: Arguments) => Promise<UpstreamRequest>;
  /** Plays what a client does first at a hosted server. */
  probeConnection: (slug: string) => Promise<ConnectionProbe>;
  /** Redeems a login that was begun to try it, and ends it. */
  finishLogin: (attempt: LoginAttempt) => Promise<GivenLogin>;
  /** Writes the call records that are still waiting, so that a list shows them. */
  flushCalls: () => Promise<void>;
};

/** What operations need of the rest of the product; `app.ts` fills it in. */
export type Parts = {
  keyring: Keyring;
  rules: ConfigRules;
  baseUrl: string;
  serverUrl: (slug: string) => string;
  callbackUrl: (slug: string) => string;
  callRetentionDays: number;
  auditRetentionDays: number;
  now: () => number;
  random: Random;
  /** Limits where none were set, and of one credential; 0 is none. */
  defaultLimits: CallLimits & { concurrentPerKey: number };
  /** Quotas where none were set. */
  defaultQuotas: Quotas;
  /** Undefined where nobody else waits for this process, which then judges everything itself. */
  judgeOnThread: JudgeOnThread | undefined;
  /** Undefined in a process that serves no calls. */
  serving: Serving | undefined;
};

export type Context = {
  db: Db;
  actor: Actor;
  requestId: string;
  /** What `foresee` made. */
  foreseen?: Foreseen | undefined;
  /** What the workspace may have, in an operation that changes something; the defaults in any other. */
  quotas: Quotas;
} & Parts;

/** @throws AppError unavailable at the machine, where no calls are served */
export function servingOf({ serving }: Pick<Parts, 'serving'>): Serving {
  if (serving) return serving;
  throw new AppError('unavailable', 'this needs the running service');
}

/** What the audit log keeps of an operation; never a secret. */
export type AuditEntry = { target?: string; detail?: { [key: string]: unknown } };

/**
 * One thing that can be done to the system. REST, OpenAPI, the management MCP server, the command line and the
 * reference pages are read from this; `runOperation` gives every one of them the same checks.
 */
export type Operation<
  Name extends string = string,
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodObject = z.ZodObject,
> = Declaration<Name, Input, Output> & { route: Route };

/** What an operation gives. */
export type OutputOf<Op extends Operation> = z.input<Op['output']>;

/** An operation as its file declares it. `run` and its like are methods, so that operations of any types make a list. */
type Declaration<Name extends string, Input extends z.ZodObject, Output extends z.ZodObject> = {
  name: Name;
  summary: string;
  /** What an agent or a reader of the reference should know besides. */
  description?: string;
  scope: Scope;
  /** `write` runs in a transaction and is audited, `call` reaches an upstream. */
  effect: 'read' | 'write' | 'call';
  /** Reads many rows, and so runs beside the calls, one at a time in a workspace (see `report-queue.ts`). */
  isReport?: boolean;
  destructive?: boolean;
  /** Only people in the dashboard may do it, and with `owner` only owners of the workspace. */
  people?: 'any' | 'owner';
  /** Whether agents get it as a tool of the management server. */
  isTool: boolean;
  input: Input;
  /** `run` gets the input as it came and judges it itself, because it can report more at once than the schema does. */
  judgesInput?: boolean;
  output: Output;
  /** Judges a large configuration ahead of the transaction of a `write`. */
  foresee?(context: Context, input: z.output<Input>): Promise<Foreseen | undefined>;
  run(context: Context, input: z.output<Input>): Promise<z.input<Output>>;
  /** Whether it left everything as it was, so that there is nothing to audit. */
  isUnchanged?(output: z.input<Output>): boolean;
  audit?(input: z.output<Input>, output: z.input<Output>): AuditEntry;
  /** The answer of the REST API is a file rather than JSON: this text, under this media type. */
  file?: { mediaType: string; name: string; text(output: z.input<Output>): string };
  /** What an agent reads instead of the JSON. */
  say?(output: z.input<Output>): string;
};

const routes = { ...operationRoutes, ...operatorRoutes };

/** Declares an operation under a name that has a route. */
export function operation<Name extends keyof typeof routes, Input extends z.ZodObject, Output extends z.ZodObject>(
  declaration: Declaration<Name, Input, Output>,
): Operation<Name, Input, Output> {
  return { ...declaration, route: routes[declaration.name] };
}
