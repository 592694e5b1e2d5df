import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { canSeePeople } from '../actor-names.ts';
import { getServer } from '../find-server.ts';
import { operation, requireServing } from '../operation.ts';
import { slugInput } from '../shapes.ts';

const textInput = z.string().min(1).max(8192);

/** Maximum number of scopes in a response. */
const maxScopes = 200;

const checkLogin = operation({
  name: 'checkLogin',
  summary: 'Complete a trial login, report who logged in and what was granted, and end the login immediately',
  description:
    'For a client that registered with the server and has just received an authorization code. The tokens are never returned: ' +
    'they are deleted without being used. The provider may consider the login valid until its tokens expire. Values that the person entered remain stored as their own values.',
  scope: 'manage:write',
  effect: 'call',
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    client_id: textInput.describe('Client ID from the registration with the server.'),
    code: textInput.describe('Authorization code from the redirect.'),
    code_verifier: textInput.describe('PKCE code verifier.'),
    redirect_uri: textInput.describe('Redirect URI that received the code.'),
  }),
  output: z.object({
    scopes: z
      .array(z.string())
      .max(maxScopes)
      .describe(
        'Scopes that the provider granted; the requested scopes if it does not say. Empty for a server without oauth.',
      ),
    missing_scopes: z.array(z.string()).max(maxScopes).describe('Requested scopes that the provider did not grant.'),
    expires_in_s: z
      .int()
      .optional()
      .describe(
        'Lifetime of the access token in seconds; absent if the provider does not say. Without oauth, time until the person must be checked at the identity provider or log in again.',
      ),
    renewable: z
      .boolean()
      .describe('True if the provider, or without oauth the identity provider, issued a refresh token.'),
    person: z
      .string()
      .optional()
      .describe(
        'Name of the person who logged in. Only shown to people in the dashboard. Absent if no one names them.',
      ),
  }),
  async run(context, { slug, client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri }) {
    const { oauth, login } = (await getServer(context, slug)).config;
    if (!oauth && !login)
      throw new AppError('notFound', 'this server has no login; add login or oauth to its configuration first');
    const requestedScopes = oauth?.scopes ?? [];
    const { requestId } = context;
    const attempt = { slug, clientId, code, verifier, redirectUri, requestId };
    const result = await requireServing(context).finishLogin(attempt);
    // Some providers separate scopes by commas. A response without scope means that all were granted (RFC 6749, 5.1).
    const granted = result.scope?.split(/[\s,]+/).filter((scope) => scope !== '');
    return {
      scopes: (granted ?? requestedScopes).slice(0, maxScopes),
      missing_scopes: granted ? requestedScopes.filter((scope) => !granted.includes(scope)).slice(0, maxScopes) : [],
      ...(result.expiresInS !== undefined && { expires_in_s: result.expiresInS }),
      renewable: result.isRenewable,
      ...(result.person !== undefined && canSeePeople(context.actor) && { person: result.person }),
    };
  },
});

export const loginCheckOperations = { checkLogin };
