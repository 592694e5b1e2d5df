import { z } from 'zod';
import { getTemplateOrigin } from './http/origin-template.ts';
import { toOwnedNames } from './http/parameter-names.ts';

const tokenModes = ['issued', 'passthrough'] as const;
const clientAuths = ['basic', 'body', 'none'] as const;

const tokenRequests = ['form', 'json'] as const;
const responseModes = ['query', 'form_post'] as const;

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
const parameterName = z.string().regex(/^[A-Za-z_][\w.-]{0,99}$/, 'allowed: a name of letters, digits, and _ . -');
const fieldName = parameterName.optional();
type RenamableShape = { [name in (typeof renamableFields)[number]]: typeof fieldName };

export const maxOAuthValues = 20;
const maxHosts = 50;
const hosts = z.array(z.string().min(1).max(253)).min(1).max(maxHosts);
const valuePath = z.string().min(1).max(200);

/** Source of a value that a login provides. */
const valueSourceSchema = z.strictObject({
  from: valuePath.describe(
    'Where the value comes from: callback.NAME, or a dot path in the token response (token.…) or in that of userinfo_url (userinfo.…). The index 0 of a userinfo list is the entry that the person chooses.',
  ),
  hosts: hosts
    .optional()
    .describe('Hosts that the value may name, as an https origin without a port. * stands for exactly one label.'),
  pattern: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Regular expression that the whole text must match. Its first group is the value.'),
});

const valuesSchema = z
  .record(z.string(), z.union([valuePath, valueSourceSchema]))
  .refine((values) => Object.keys(values).length <= maxOAuthValues, `allowed: at most ${maxOAuthValues} values`);

const tokenUrlSourceSchema = z.strictObject({
  from: valuePath.describe('Callback parameter with the https origin of the token endpoint: callback.NAME.'),
  hosts: hosts.describe('Hosts that it may name, exactly.'),
  path: z.string().min(1).max(500).describe('Path of the token endpoint.'),
});

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
  response_mode: z
    .enum(responseModes)
    .optional()
    .describe(
      'How the provider returns to the callback: query (default), or form_post for a provider that sends a form (Apple). Not in local mode.',
    ),
  code_parameter: fieldName.describe('Callback parameter with the authorization code. Defaults to code.'),
  callback_values: z
    .array(parameterName)
    .min(1)
    .max(10)
    .optional()
    .describe('Callback parameters to add to the token request and to every refresh.'),
  redirect_name: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Name that the provider uses instead of the redirect URI (eBay RuName). It is sent as redirect_uri.'),
  token_url: z.string().max(2048).describe('Endpoint that exchanges an authorization code for an access token.'),
  refresh_url: z
    .string()
    .max(2048)
    .optional()
    .describe('Endpoint that refreshes a token, if it is not token_url. It must have the same origin.'),
  token_url_from: tokenUrlSourceSchema
    .optional()
    .describe('Takes the host of the token endpoint from the callback instead of token_url.'),
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
  token_prefix: z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,64}$/, 'allowed: one word, or "" for none')
    .optional()
    .describe('Scheme of the login token where authentication sends it, instead of Bearer. "" sends only the token.'),
  userinfo_url: z
    .string()
    .max(2048)
    .optional()
    .describe('https URL that is read once with the new token, for values. Its response is JSON.'),
  values: valuesSchema
    .optional()
    .describe(
      'Values of the login for {{NAME}} in URLs and headers of tools, each as a path such as token.instance_url or as an object.',
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

/** Source of a value that a login provides. */
export type OAuthValueSource = z.infer<typeof valueSourceSchema>;

/** Returns the values of a login, by name. */
export function getOAuthValues({ values = {} }: Pick<OAuth, 'values'>): [name: string, source: OAuthValueSource][] {
  return Object.entries(values).map(([name, source]) => [name, typeof source === 'string' ? { from: source } : source]);
}

/**
 * Returns the origins that receive the client secret, as they are written: the host of `token_url` may contain
 * `{{NAME}}`.
 */
export function getTokenOrigins({ token_url, token_url_from }: Pick<OAuth, 'token_url' | 'token_url_from'>): string[] {
  return [
    ...new Set([getTemplateOrigin(token_url), ...(token_url_from?.hosts ?? []).map((host) => `https://${host}`)]),
  ];
}

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
