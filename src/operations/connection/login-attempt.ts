/** The way back of a login that was begun to try it: what its client got, and what it kept for itself. */
export type LoginAttempt = {
  slug: string;
  clientId: string;
  code: string;
  verifier: string;
  redirectUri: string;
  requestId: string;
};

/** What the provider gave, without the tokens. Spans in seconds; undefined is what the provider did not say. */
export type GivenLogin = { scope: string | undefined; expiresInS: number | undefined; isRenewable: boolean };
