import { z } from 'zod';
import { toOwnedNames } from './http/parameter-names.ts';

const tokenModes = ['issued', 'passthrough'] as const;
const clientAuths = ['basic', 'body', 'none'] as const;

const tokenRequests = ['form', 'json'] as const;

/** Fields of a token request or response that a provider may call differently. */
const renamableFields = [
  'client_id',
  'client_secret',
  'code',
  'grant_type',
  'redirect_uri',
  'refresh_token',
  'access_token',
  'expires_in',
] as const;
const fieldName = z
  .string()
  .regex(/^[A-Za-z_][\w.-]{0,99}$/, 'allowed: a name of letters, digits, and _ . -')
  .optional();
type RenamableShape = { [name in (typeof renamableFields)[number]]: typeof fieldName };

const maxExtraParams = 50;

const params = z
  .record(z.string().min(1).max(100), z.string().max(1000))
  .refine((params) => Object.keys(params).length <= maxExtraParams, `allowed: at most ${maxExtraParams} parameters`)
  .optional();

const fields = z.strictObject({
  authorization_url: z
    .string()
    .max(2048)
    .describe("Provider's authorization endpoint; people are sent here to log in."),
  token_url: z.string().max(2048).describe('Endpoint that exchanges an authorization code for an access token.'),
  refresh_url: z
    .string()
    .max(2048)
    .optional()
    .describe('Endpoint that refreshes a token, if it is not token_url. It must have the same origin.'),
  client_id: z.string().min(1).max(500).describe('Client ID of the OAuth application at the provider.'),
  client_secret: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('Client secret. It is stored encrypted and never shown again. Required unless client_auth is none.'),
  client_auth: z
    .enum(clientAuths)
    .optional()
    .describe(
      'How the client authenticates at token_url: body (default) sends ID and secret as form fields, basic uses HTTP Basic, and none is for a public client without a secret.',
    ),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)'))
    .max(100)
    .default([])
    .describe('Scopes to request.'),
  extra_params: params.describe(
    'Additional query parameters of the authorization URL, for example to request offline access.',
  ),
  token_params: params.describe('Additional form fields for token_url, sent at login and at refresh.'),
  token_request: z
    .enum(tokenRequests)
    .optional()
    .describe(
      'Encoding of the requests to token_url: form (default) as RFC 6749 requires, or json for a provider that accepts nothing else.',
    ),
  token_fields: z
    .strictObject(Object.fromEntries(renamableFields.map((name) => [name, fieldName])) as RenamableShape)
    .optional()
    .describe(
      'Names of token request and response fields that the provider calls differently, for example {"client_id": "appid"}.',
    ),
  token_path: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Dot path in the token_url response to the object that contains access_token, or to the token itself, for example authed_user.',
    ),
  token_mode: z
    .enum(tokenModes)
    .optional()
    .describe('issued (default): agents get a token of this service. passthrough: agents get the provider token.'),
  pkce: z.boolean().optional().describe('false disables PKCE for a provider that does not support it.'),
});

/** OAuth provider that people log in to (spec 2.3). */
export const oauthSchema = fields
  .refine(({ client_auth, client_secret }) => (client_auth === 'none') === (client_secret === undefined), {
    path: ['client_secret'],
    error: 'allowed: the client secret, or no secret if client_auth is "none"',
  })
  .refine(({ client_auth, pkce }) => client_auth !== 'none' || pkce !== false, {
    path: ['pkce'],
    error: 'is required for a public client, which has no secret; leave it out, or set client_auth',
  })
  .refine(({ client_auth, token_fields }) => client_auth !== 'basic' || !renamesClient(token_fields), {
    path: ['token_fields'],
    error: 'client_id and client_secret are not fields of the request with client_auth "basic"; leave them out',
  });

function renamesClient(names: { client_id?: string | undefined; client_secret?: string | undefined } = {}): boolean {
  return names.client_id !== undefined || names.client_secret !== undefined;
}

export type OAuth = z.infer<typeof oauthSchema>;

/** Names of token request and response fields that the provider calls differently. */
export type TokenFieldNames = NonNullable<OAuth['token_fields']>;

/**
 * Authorization URL parameters that the service sets itself, or that would make the provider respond in a form that the
 * callback does not accept. Neither the URL nor `extra_params` may contain them.
 */
export const authorizationParams = toOwnedNames([
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

/** Form fields that the service sends to `token_url`. Neither its query nor `token_params` may contain them. */
export const tokenRequestFields = [
  'grant_type',
  'code',
  'redirect_uri',
  'client_id',
  'client_secret',
  'code_verifier',
  'refresh_token',
] as const;
export const tokenParams = toOwnedNames(tokenRequestFields);

/** Parameters of the token request of client credentials (RFC 6749, 4.4.2). */
export const clientTokenParams = toOwnedNames([
  'grant_type',
  'client_id',
  'client_secret',
  'scope',
  'audience',
  'resource',
]);
