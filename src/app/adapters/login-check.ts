import { AppError, OAuthError } from '../../errors.ts';
import type { OAuthParts, RequestParts, TokenAnswer } from '../../oauth/parts.ts';
import { revoke } from '../../oauth/tokens/revoke.ts';
import { redeem } from '../../oauth/tokens/token.ts';
import type { GrantUse } from '../../oauth/tokens/use-grant.ts';
import type { GivenLogin, LoginAttempt } from '../../operations/connection/login-attempt.ts';

type LoginCheckParts = { oauth: OAuthParts; grants: GrantUse };

/**
 * Finishes a trial login as its client would, and ends it. The provider's answer is described and dropped here, so that
 * people who try out a login never hold a token.
 */
export function createLoginCheck({ oauth: parts, grants }: LoginCheckParts) {
  const oauth: RequestParts = { ...parts, documents: parts.documentsOf('login check') };
  /** @throws AppError notFound without a login, invalid for a code that is not good here */
  return async ({ slug, clientId, code, verifier, redirectUri, requestId }: LoginAttempt): Promise<GivenLogin> => {
    const server = await oauth.findServer(slug);
    if (!server) throw new AppError('notFound', 'this server has no login');
    const attempt = { client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri };
    const form = new URLSearchParams({ grant_type: 'authorization_code', ...attempt });
    const answer = await redeem(server, form, oauth).catch(toAppError);
    if (server.mode === 'passthrough') return ofPassthrough(answer);
    try {
      const open = await grants.open(server, answer.access_token);
      if (!open) throw new AppError('conflict', 'the server was changed during the login; start again');
      const { scope, expiresAt, refreshToken } = open.tokens;
      const expiresInS =
        expiresAt === undefined ? undefined : Math.max(0, Math.round((expiresAt - oauth.now()) / 1000));
      return { scope, expiresInS, isRenewable: refreshToken !== undefined };
    } finally {
      await revoke(server, new URLSearchParams({ client_id: clientId, token: answer.access_token }), requestId, oauth);
    }
  };
}

/** The answer of a passthrough login, whose grant has already ended: only the answer holds the provider's tokens. */
function ofPassthrough({ scope, expires_in: expiresInS, refresh_token: refreshToken }: TokenAnswer): GivenLogin {
  return { scope, expiresInS, isRenewable: refreshToken !== undefined };
}

function toAppError(error: unknown): never {
  if (!(error instanceof OAuthError)) throw error;
  throw new AppError('invalid', `the login could not be finished: ${error.message}`, { cause: error });
}
