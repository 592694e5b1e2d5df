const reasons: { readonly [code: string]: string } = {
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name could not be looked up',
  ECONNREFUSED: 'nothing listens at its address',
  ECONNRESET: 'it closed the connection before the end of its answer',
  UND_ERR_SOCKET: 'it closed the connection before the end of its answer',
  UND_ERR_CONNECT_TIMEOUT: 'its address does not answer',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS at this port',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate chain is incomplete',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by an unknown authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
};

/** Why `fetch` got no answer from a server, or not the end of one, for people; undefined for a cause without a sentence here. */
export function connectionReason(error: unknown): string | undefined {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasons[String((cause as NodeJS.ErrnoException | undefined)?.code)];
}
