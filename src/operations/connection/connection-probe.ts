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
