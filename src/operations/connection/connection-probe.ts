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
