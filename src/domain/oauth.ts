import { z } from 'zod';

export const tokenModes = ['issued', 'passthrough'] as const;

/** The provider at which people log in (spec 2.3). */
export const oauthSchema = z.strictObject({
  authorization_url: z
    .string()
    .max(2048)
    .describe("Provider's authorization endpoint; people are sent here to log in."),
  token_url: z.string().max(2048).describe('Endpoint at which an authorization code is exchanged for an access token.'),
  client_id: z.string().min(1).max(500).describe('Client id of the OAuth application at the provider.'),
  client_secret: z.string().min(1).max(4096).describe('Client secret; stored sealed, never shown again.'),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)'))
    .max(100)
    .default([])
    .describe('Scopes to request.'),
  extra_params: z
    .record(z.string().min(1).max(100), z.string().max(1000))
    .optional()
    .describe('Extra query parameters of the authorization URL, for example one that asks for offline access.'),
  token_mode: z
    .enum(tokenModes)
    .optional()
    .describe('issued (default): agents hold a token of ours. passthrough: agents hold the token of the provider.'),
  pkce: z.boolean().optional().describe('false leaves PKCE out towards a provider that cannot handle it.'),
});

export type OAuth = z.infer<typeof oauthSchema>;

/** Parameters that we set on the authorization URL ourselves; neither the URL nor `extra_params` may hold them. */
export const ownedParams: readonly string[] = [
  'response_type',
  'client_id',
  'client_secret',
  'redirect_uri',
  'state',
  'scope',
  'code_challenge',
  'code_challenge_method',
  'code',
  'request',
  'request_uri',
];
