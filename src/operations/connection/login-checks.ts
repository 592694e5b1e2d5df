import { z } from 'zod';
import { AppError } from '../../errors.ts';
import { operation, servingOf } from '../operation.ts';
import { getServer, slugInput } from '../shapes.ts';

const text = z.string().min(1).max(8192);

/** Number of scopes that are listed. */
const mostScopes = 200;

const checkLogin = operation({
  name: 'checkLogin',
  summary: 'Finish a login that was begun to try it, say what the provider gave, and end it at once',
  description:
    'For a client that registered at the server and has just been given a code. The tokens are in no answer: they are ' +
    'deleted here without having been used. The provider may know the login for as long as its tokens last.',
  scope: 'manage:write',
  effect: 'call',
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    client_id: text.describe('Of the registration at the server.'),
    code: text.describe('As it came to the redirect URI.'),
    code_verifier: text.describe('Of PKCE.'),
    redirect_uri: text.describe('To which the code came.'),
  }),
  output: z.object({
    scopes: z
      .array(z.string())
      .max(mostScopes)
      .describe('That the provider granted; those asked for where it does not say.'),
    missing_scopes: z
      .array(z.string())
      .max(mostScopes)
      .describe('Asked for, and not among those that the provider says it granted.'),
    expires_in_s: z.int().optional().describe('How long the access token lasts; absent when the provider did not say.'),
    renewable: z.boolean().describe('Whether the provider gave a refresh token.'),
  }),
  async run(context, { slug, client_id: clientId, code, code_verifier: verifier, redirect_uri: redirectUri }) {
    const { oauth } = (await getServer(context, slug)).config;
    if (!oauth) throw new AppError('notFound', 'this server has no login; give it oauth first');
    const { requestId } = context;
    const given = await servingOf(context).finishLogin({ slug, clientId, code, verifier, redirectUri, requestId });
    // Some providers separate scopes by commas. No scope in the answer means that all were granted (RFC 6749, 5.1).
    const granted = given.scope?.split(/[\s,]+/).filter((scope) => scope !== '');
    return {
      scopes: (granted ?? oauth.scopes).slice(0, mostScopes),
      missing_scopes: granted ? oauth.scopes.filter((scope) => !granted.includes(scope)).slice(0, mostScopes) : [],
      ...(given.expiresInS !== undefined && { expires_in_s: given.expiresInS }),
      renewable: given.isRenewable,
    };
  },
});

export const loginCheckOperations = { checkLogin };
