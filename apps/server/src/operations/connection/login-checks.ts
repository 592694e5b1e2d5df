import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { getServer } from '../find-server.ts';
import { operation, requireServing } from '../operation.ts';
import { slugInput } from '../shapes.ts';

const textInput = z.string().min(1).max(8192);

/** Maximum number of scopes in a response. */
const maxScopes = 200;

const checkLogin = operation({
  name: 'checkLogin',
  summary: 'Complete a trial login, report what the provider granted, and end the login immediately',
  description:
    'For a client that registered with the server and has just received an authorization code. The tokens are never returned: ' +
    'they are deleted without being used. The provider may consider the login valid until its tokens expire.',
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
      .describe('Scopes that the provider granted; the requested scopes if it does not say.'),
    missing_scopes: z.array(z.string()).max(maxScopes).describe('Requested scopes that the provider did not grant.'),
    expires_in_s: z
      .int()
      .optional()
      .describe('Lifetime of the access token in seconds; absent if the provider does not say.'),
    renewable: z.boolean().describe('True if the provider issued a refresh token.'),
  }),
  async run(context, { slug, client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri }) {
    const { oauth } = (await getServer(context, slug)).config;
    if (!oauth) throw new AppError('notFound', 'this server has no login; add oauth to its configuration first');
    const { requestId } = context;
    const login = await requireServing(context).finishLogin({ slug, clientId, code, verifier, redirectUri, requestId });
    // Some providers separate scopes by commas. A response without scope means that all were granted (RFC 6749, 5.1).
    const granted = login.scope?.split(/[\s,]+/).filter((scope) => scope !== '');
    return {
      scopes: (granted ?? oauth.scopes).slice(0, maxScopes),
      missing_scopes: granted ? oauth.scopes.filter((scope) => !granted.includes(scope)).slice(0, maxScopes) : [],
      ...(login.expiresInS !== undefined && { expires_in_s: login.expiresInS }),
      renewable: login.isRenewable,
    };
  },
});

export const loginCheckOperations = { checkLogin };
