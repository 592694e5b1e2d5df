import { z } from 'zod';
import { ownedNames } from '../http/parameter-names.ts';

const tokenModes = ['issued', 'passthrough'] as const;
const clientAuths = ['basic', 'body', 'none'] as const;

const maxExtraParams = 50;

const params = z
  .record(z.string().min(1).max(100), z.string().max(1000))
  .refine((given) => Object.keys(given).length <= maxExtraParams, `allowed: at most ${maxExtraParams} parameters`)
  .optional();

const fields = z.strictObject({
  authorization_url: z
    .string()
    .max(2048)
    .describe("Provider's authorization endpoint; people are sent here to log in."),
  token_url: z.string().max(2048).describe('Endpoint at which an authorization code is exchanged for an access token.'),
  client_id: z.string().min(1).max(500).describe('Client id of the OAuth application at the provider.'),
  client_secret: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('Client secret; stored sealed, never shown again. Needed unless client_auth is none.'),
  client_auth: z
    .enum(clientAuths)
    .optional()
    .describe(
      'How the client authenticates at token_url: body (default) sends id and secret in the form, basic as HTTP Basic; none is for a public client, which has no secret.',
    ),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)'))
    .max(100)
    .default([])
    .describe('Scopes to request.'),
  extra_params: params.describe(
    'Extra query parameters of the authorization URL, for example one that asks for offline access.',
  ),
  token_params: params.describe('Extra fields of the form that goes to token_url, at a login and at a refresh.'),
  token_path: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Dot path in the answer of token_url to the object that holds access_token, or to the token itself, for example authed_user.',
    ),
  token_mode: z
    .enum(tokenModes)
    .optional()
    .describe('issued (default): agents hold a token of ours. passthrough: agents hold the token of the provider.'),
  pkce: z.boolean().optional().describe('false leaves PKCE out towards a provider that cannot handle it.'),
});

/** The provider at which people log in (spec 2.3). */
export const oauthSchema = fields
  .refine(({ client_auth, client_secret }) => (client_auth === 'none') === (client_secret === undefined), {
    path: ['client_secret'],
    error: 'allowed: the secret of the client, or none at all together with client_auth "none"',
  })
  .refine(({ client_auth, pkce }) => client_auth !== 'none' || pkce !== false, {
    path: ['pkce'],
    error: 'is needed for a public client, which has no secret; leave it out, or set client_auth',
  });

export type OAuth = z.infer<typeof oauthSchema>;

/**
 * Parameters of the authorization URL that the service sets itself, or that would make the provider answer in a form that
 * the callback does not take; neither the URL nor `extra_params` may hold them.
 */
export const authorizationParams = ownedNames([
  'response_type',
  'response_mode',
  'client_id',
  'client_secret',
  'redirect_uri',
  'state',
  'scope',
  'code_challenge',
  'code_challenge_method',
  'code_verifier',
  'code',
  'iss',
  'request',
  'request_uri',
  'dpop_jkt',
]);

/** Parameters of the form that goes to `token_url`; neither its query nor `token_params` may hold them as well. */
export const tokenParams = ownedNames([
  'grant_type',
  'code',
  'redirect_uri',
  'client_id',
  'client_secret',
  'code_verifier',
  'refresh_token',
]);

/** Parameters of the token request of client credentials (RFC 6749, 4.4.2). */
export const clientTokenParams = ownedNames([
  'grant_type',
  'client_id',
  'client_secret',
  'scope',
  'audience',
  'resource',
]);
