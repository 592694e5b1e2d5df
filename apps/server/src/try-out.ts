import type { LimitedKey } from '@toolhost/limits/call-limits';
import type { ToolDefinition } from '@toolhost/tool-config/built-in-tools';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import type { ToolMode } from '@toolhost/tool-config/tool';
import type { ModelQuestion } from './model.ts';

/** A server or one of its views, with the settings that differ from what agents get. */
export type ServedVariant = {
  slug: string;
  view: string | undefined;
  mode?: ToolMode | undefined;
  /** An older version of the server. */
  olderVersion?: { version: number; config: ServerConfig } | undefined;
};

/**
 * A test call of a tool by someone who manages the server. `token` is the caller's token, for servers that forward it.
 */
export type TestCall = ServedVariant & {
  tool: string;
  args: Arguments;
  token: string | undefined;
  /** Id of the API key or user. */
  actorId: string;
  /** User whose values are sent. Undefined for the operator. */
  userId: string | undefined;
  /** The API key and the keys it was created with, as far as they have limits. */
  limitedKeys: readonly LimitedKey[] | undefined;
  requestId: string;
  /**
   * Checks again that the actor is authorized; called before the request is sent if the call was queued.
   * @throws Unauthenticated, AppError
   */
  checkActor: () => Promise<void>;
};

/** A question in the playground of a server. */
export type ModelRequest = Pick<TestCall, 'actorId' | 'limitedKeys' | 'requestId' | 'checkActor'> & {
  variant: ServedVariant;
  question: ModelQuestion;
  /** Subject of error sentences: the model's host, or its name for actors who may not see its address. */
  subject: string;
};

/** The tools and instructions of a server, as an agent gets them. */
export type ExposedTools = {
  instructions: string | undefined;
  tools: ToolDefinition[];
  /** Returns true if a call only reads. */
  isReadOnly(tool: string, args: Arguments): boolean;
};
