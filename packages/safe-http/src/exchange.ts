import type { IncomingHttpHeaders } from 'node:http';

/** Memory reservation for the bytes of some work. */
export type ReservedMemory = {
  /** Reserves more bytes. Returns false if there is not enough memory. */
  grow(bytes: number): boolean;
  release(): void;
};

/** A request to an upstream. `path` includes the query; `headers` alternates names and values. */
export type Exchange = {
  /** Workspace that sends the request. Workspaces never share connections. */
  workspaceId: string;
  origin: string;
  /**
   * Digest of the credentials that are sent. A connection carries only requests with the same digest. Without a digest,
   * the connection is closed after this request.
   */
  credentialHash: string | undefined;
  /** Address of an unverified caller. The outcome of its calls does not influence other callers. */
  unverifiedCaller?: string | undefined;
  path: string;
  method: string;
  headers: string[];
  body: string | Buffer | undefined;
  /** Timeout of the whole exchange, from the DNS lookup to the last byte. */
  timeoutMs: number;
  /** Maximum response body size, before and after decompression. */
  limitBytes: number;
  /**
   * Memory reservation of the sender, which releases it when the response is no longer needed. Without it, the client
   * counts the response as it arrives.
   */
  reservation?: ReservedMemory | undefined;
  /**
   * Receives the head of a response, and returns a function that receives each body chunk as it arrives; the body of
   * the response is then empty. Not called for a response with a content coding, which is returned as a whole.
   */
  onHead?: ((head: Omit<UpstreamResponse, 'body'>) => (chunk: Buffer) => void) | undefined;
  /** Receives a function that closes the connection and rejects with reason `cancelled`. */
  registerCancel?: ((cancel: () => void) => void) | undefined;
};

/** A response. Its body may be a slab, which belongs to the sender and may be released (`@toolhost/limits/slabs`). */
export type UpstreamResponse = { status: number; statusText: string; headers: IncomingHttpHeaders; body: Buffer };
