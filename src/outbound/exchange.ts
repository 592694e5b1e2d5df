import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** One request to somebody else's machine. `path` has the query; `headers` alternates names and values. */
export type Exchange = {
  /** The workspace that asks: no connection of one workspace is ever used for another. */
  workspaceId: string;
  origin: string;
  /**
   * A digest of the credentials that are sent. A connection carries only requests with the same one; with undefined it
   * is closed after this request.
   */
  credentialHash: string | undefined;
  /**
   * Whose request it is, for what stands in front of the connections: a digest or id of the credential, and for a caller
   * who is not known the address that the request came from. `credential` is what is known of one that callers bring.
   */
  caller?: {
    readonly id: string | undefined;
    readonly network: string | undefined;
    readonly credential?: { readonly party: string; readonly isProven: boolean; isFailing: boolean } | undefined;
  };
  path: string;
  method: Dispatcher.HttpMethod;
  headers: string[];
  body: string | Buffer | undefined;
  /** Time for everything, from the name look-up to the last byte. */
  timeoutMs: number;
  /** Most bytes of the answer, before and after decompression. */
  limitBytes: number;
  /** Given a function that closes the connection and rejects with reason `cancelled`. */
  onGone?: ((cancel: () => void) => void) | undefined;
};

export type Answer = { status: number; statusText: string; headers: IncomingHttpHeaders; body: Buffer };
