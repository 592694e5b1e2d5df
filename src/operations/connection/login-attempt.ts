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
