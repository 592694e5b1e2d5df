import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** Memory that counts the bytes of some work. */
export type HeldMemory = {
  /** False when there is no room for so many bytes more. */
  add(bytes: number): boolean;
  end(): void;
};

/** One request to an upstream. `path` includes the query; `headers` alternates names and values. */
export type Exchange = {
  /** The workspace that sends it. Workspaces never share connections. */
  workspaceId: string;
  origin: string;
  /**
   * A digest of the credentials that are sent. A connection carries only requests with the same digest; without one it
   * is closed after this request.
   */
  credentialHash: string | undefined;
  /** The address of a caller whose credential is not known to be good: how its calls end says nothing to others. */
  stranger?: string | undefined;
  path: string;
  method: Dispatcher.HttpMethod;
  headers: string[];
  body: string | Buffer | undefined;
  /** Time for the whole exchange, from the DNS lookup to the last byte. */
  timeoutMs: number;
  /** Longest body of the answer, before and after decompression. */
  limitBytes: number;
  /** The memory of the sender, who ends it when the answer is no longer needed. Without it the client counts the answer while it arrives. */
  held?: HeldMemory | undefined;
  /**
   * Gets the head of an answer, and returns what takes each piece of its body as it arrives; the body of the answer is
   * empty then. It is not called for an answer in a content coding, which is given whole.
   */
  onHead?: ((head: Omit<Answer, 'body'>) => (piece: Buffer) => void) | undefined;
  /** Gets a function that closes the connection and rejects with reason `cancelled`. */
  onGone?: ((cancel: () => void) => void) | undefined;
};

export type Answer = { status: number; statusText: string; headers: IncomingHttpHeaders; body: Buffer };
