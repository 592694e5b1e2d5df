export type ProbeJson = { [key: string]: unknown };

/** What a client that knows nothing but the address of a server comes upon, as it was answered. */
export type ConnectionProbe = {
  /** The answer to a request without a credential; undefined when it was let in. */
  refusal: { status: number; challenge: string } | undefined;
  /** Where the challenge leads: the metadata of the resource, and of the authorization server that it names. */
  resource: ProbeJson | undefined;
  issuer: ProbeJson | undefined;
  /** The JSON-RPC answers to the first requests of both eras. */
  answers: { initialize: ProbeJson; discover: ProbeJson; tools: ProbeJson; modernTools: ProbeJson };
  /** Known clients whose registration is refused, and why. */
  refusedClients: { client: string; reason: string }[];
};
