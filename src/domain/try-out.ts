import type { ServerConfig } from './config/server-config.ts';
import type { ToolMode } from './config/tool.ts';
import type { LimitedKey } from './limits.ts';
import type { ModelQuestion } from './model.ts';
import type { Arguments } from './request/sent-argument.ts';
import type { ToolDefinition } from './search/own-tools.ts';

/** A server or a view of it, and what differs from how agents get it. */
export type Served = {
  slug: string;
  view: string | undefined;
  mode?: ToolMode | undefined;
  /** An older version of the server. */
  older?: { version: number; config: ServerConfig } | undefined;
};

/** A call of a tool that somebody who manages tries. `token` is the caller's token, for servers that forward it. */
export type TryOutCall = Served & {
  tool: string;
  args: Arguments;
  token: string | undefined;
  /** Id of the API key or user. */
  actorId: string;
  /** The API key and those it was made with, as far as they have limits. */
  limits: readonly LimitedKey[] | undefined;
  requestId: string;
  /**
   * Checks once more that the actor may do this; called before the request is sent, when the call has waited.
   * @throws Unauthenticated, AppError
   */
  checkActor: () => Promise<void>;
};

/** A question in the playground of a server. */
export type AskedModel = Pick<TryOutCall, 'actorId' | 'limits' | 'requestId' | 'checkActor'> & {
  served: Served;
  question: ModelQuestion;
  /** Subject of the sentences of errors: the model's host, or its name for actors that may not see its address. */
  subject: string;
};

/** The tools of a server as an agent gets them, and what it reads first. */
export type OfferedTools = {
  instructions: string | undefined;
  tools: ToolDefinition[];
  /** Whether a call only reads. */
  isReading(tool: string, args: Arguments): boolean;
};
