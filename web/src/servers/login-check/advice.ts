/** Advice for a login that failed, by its OAuth error and our message. */
export function adviceOn(error: string, description: string): string {
  if (error === 'access_denied') {
    return /provider/.test(description)
      ? 'Try again and agree at the provider. If it refuses by itself, check there who may use the application.'
      : 'Try again and choose “Allow and log in”.';
  }
  if (error === 'invalid_scope') return 'The provider does not know one of the scopes: compare them with its own list.';
  if (error === 'temporarily_unavailable')
    return 'Check the token URL and whether the provider is up. A provider in a private network must be allowed by the operator of the service (EGRESS_ALLOW).';
  if (/client id|client secret/.test(description))
    return 'Type the client id and the client secret again, just as the provider shows them, and save.';
  if (/does not accept this login/.test(description))
    return 'Compare the callback URL that is registered at the provider with the one here, letter by letter. Some old providers also need PKCE switched off, under “More about the login”.';
  if (/expires_in|token_type/.test(description))
    return 'Agents that hold the provider’s own token need these fields; with “A token of Toolhost” they are not needed.';
  if (error === 'server_error') return 'Check the token URL: it must answer a POST with JSON that has an access_token.';
  return 'Try again; what the service noted about it is under Audit.';
}
