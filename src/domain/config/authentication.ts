import { z } from 'zod';
import { foldedHeader, type OwnedNames, ownedNames } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';

export const authenticationTypes = [
  'Bearer',
  'ApiKey',
  'Basic',
  'QueryParam',
  'Cookie',
  'ClientCredentials',
  'AwsSigV4',
] as const;
type AuthenticationType = (typeof authenticationTypes)[number];

const text = (most: number) => z.string().min(1).max(most).optional();
/** User or password; either may be empty (RFC 7617, 2). */
const mayBeEmpty = (most: number) => z.string().max(most).optional();
/** Maximum characters of a scope, and of the value of an extra parameter. */
export const mostScope = 200;
export const mostExtra = 1000;
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)');

/** A credential and how it is sent to the upstream (spec 2.2 and additional types). */
export const authenticationSchema = z.strictObject({
  type: z
    .enum(authenticationTypes)
    .describe(
      'Bearer and Basic prefix the token with that word. ApiKey sends it unchanged, QueryParam puts it in the URL, and Cookie puts it in a cookie. ClientCredentials requests a token at token_url (RFC 6749, 4.4). AwsSigV4 signs the request.',
    ),
  header: z.string().optional().describe('Header that carries the token. Defaults to Authorization.'),
  query_key: text(64).describe('Query parameter for QueryParam. Defaults to api_key.'),
  cookie: text(64).describe('Cookie name for Cookie.'),
  token: text(8192).describe(
    'A stored credential that is sent with every call, normally "{{NAME}}". Callers then use a workspace API key.',
  ),
  user: mayBeEmpty(500).describe('Basic: user name of a stored credential, instead of token.'),
  password: mayBeEmpty(4096).describe(
    'Basic: password of a stored credential, normally "{{NAME}}". Use "" if the upstream accepts only a user name.',
  ),
  token_url: text(2048).describe('ClientCredentials: token endpoint of the authorization server.'),
  client_id: text(500).describe('ClientCredentials: client ID.'),
  client_secret: text(4096).describe('ClientCredentials: client secret, normally "{{NAME}}".'),
  scopes: z.array(scope).max(100).optional().describe('ClientCredentials: scopes to request.'),
  audience: text(1000).describe('ClientCredentials: audience to request.'),
  resource: text(1000).describe('ClientCredentials: resource to request (RFC 8707).'),
  client_auth: z
    .enum(['basic', 'body'])
    .optional()
    .describe('ClientCredentials: how the client authenticates: with HTTP Basic (default) or in the body.'),
  extra_params: z
    .record(z.string().min(1).max(100), z.string().max(mostExtra))
    .refine((params) => Object.keys(params).length <= 50, 'allowed: at most 50 parameters')
    .optional()
    .describe('ClientCredentials: additional token request parameters.'),
  access_key_id: text(200).describe('AwsSigV4: access key ID.'),
  secret_access_key: text(4096).describe('AwsSigV4: secret access key, normally "{{NAME}}".'),
  session_token: text(8192).describe('AwsSigV4: session token of temporary credentials, normally "{{NAME}}".'),
  region: text(100).describe('AwsSigV4: region, such as eu-central-1.'),
  service: text(100).describe('AwsSigV4: service signing name, such as execute-api or s3.'),
});

export type Authentication = z.infer<typeof authenticationSchema>;
type Field = keyof Authentication;

const maxCredentials = 4;

/** One credential, or a list of them. */
export const authenticationsSchema = z.union([
  authenticationSchema,
  z.array(authenticationSchema).min(1).max(maxCredentials),
]);
export type Authentications = z.infer<typeof authenticationsSchema>;

/** Returns the credentials of a configuration as a list. */
export function credentialsOf(authentication: Authentications | undefined): readonly Authentication[] {
  if (authentication === undefined) return [];
  return Array.isArray(authentication) ? authentication : [authentication];
}

/** Returns the path of one entry of `given`, whose own path is `at`. */
export function credentialPath(given: Authentications, index: number, at = 'authentication'): string {
  return Array.isArray(given) ? `${at}[${index}]` : at;
}

/** The credentials of a configuration: the default for its tools, and named ones that a tool may use instead. */
export type Credentials = {
  authentication?: Authentications | undefined;
  credentials?: Readonly<Record<string, Authentications>> | undefined;
};

/** Value of a tool's `credential` that sends no credential. No named credential may have this name. */
export const noCredential = 'none';
export const credentialNamePattern = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/;
export const mostNamedCredentials = 20;

/** Returns the credential that a tool of a valid configuration sends. */
export function authenticationOfTool(
  { authentication, credentials = {} }: Credentials,
  { credential }: { credential?: string | undefined },
): Authentications | undefined {
  if (credential === undefined) return authentication;
  return Object.hasOwn(credentials, credential) ? credentials[credential] : undefined;
}

/** A credential of a configuration, its path, and the prefix of the names under which its values are stored. */
type PlacedCredential = { one: Authentication; path: string; storedAs: string };

/** Lists every credential of a configuration. */
export function everyCredential({ authentication, credentials = {} }: Credentials): PlacedCredential[] {
  const named = Object.entries(credentials).map(([name, given]): [string, Authentications] => [
    `credentials.${name}`,
    given,
  ]);
  const all = authentication === undefined ? named : [['authentication', authentication] as const, ...named];
  return all.flatMap(([at, given]) =>
    credentialsOf(given).map((one, index) => ({
      one,
      path: credentialPath(given, index, at),
      storedAs: Array.isArray(given) ? `${at}[${credentialLocation(one)}]` : at,
    })),
  );
}

/** Returns the prefix of the names under which the values of a credential are stored. */
export function storedNameOf(config: Credentials, one: Authentication): string {
  return everyCredential(config).find((placed) => placed.one === one)?.storedAs ?? '';
}

/** Fields of each type besides `type`. `required` lists the mandatory ones. */
export const fieldsOfType: Record<AuthenticationType, { required: readonly Field[]; optional: readonly Field[] }> = {
  Bearer: { required: [], optional: ['header', 'token'] },
  ApiKey: { required: [], optional: ['header', 'token'] },
  Basic: { required: [], optional: ['header', 'token', 'user', 'password'] },
  QueryParam: { required: [], optional: ['query_key', 'token'] },
  Cookie: { required: ['cookie'], optional: ['token'] },
  ClientCredentials: {
    required: ['token_url', 'client_id', 'client_secret'],
    optional: ['header', 'scopes', 'audience', 'resource', 'client_auth', 'extra_params'],
  },
  AwsSigV4: {
    required: ['access_key_id', 'secret_access_key', 'region', 'service'],
    optional: ['session_token'],
  },
};

/** Headers that an AWS signature uses (Signature Version 4). */
export const signatureHeaders = ['Authorization', 'X-Amz-Date', 'X-Amz-Security-Token', 'X-Amz-Content-Sha256'];

/** Returns true for a stored credential; false if the token comes from the caller or from a login. */
export function isStored({ type, token, user, password }: Authentication): boolean {
  if (type === 'ClientCredentials' || type === 'AwsSigV4') return true;
  return token !== undefined || user !== undefined || password !== undefined;
}

/** Returns the header that carries the credential, or undefined if it is sent elsewhere. */
export function credentialHeader({ type, header }: Authentication): string | undefined {
  return type === 'QueryParam' || type === 'Cookie' ? undefined : (header ?? 'Authorization');
}

/** Returns all headers that carry a credential, folded for comparison. */
export function credentialHeaders(authentication: Authentications | undefined): Set<string> {
  const names = credentialsOf(authentication).flatMap((one) =>
    one.type === 'AwsSigV4' ? signatureHeaders : (credentialHeader(one) ?? []),
  );
  return new Set(names.map(foldedHeader));
}

/** Returns the query parameter that carries the credential, or undefined if it is sent elsewhere. */
export function credentialQueryKey({ type, query_key }: Authentication): string | undefined {
  return type === 'QueryParam' ? (query_key ?? 'api_key') : undefined;
}

/** Returns the query parameters of the credentials, in the form that is used for comparing names. */
export function credentialQueryNames(authentication: Authentications | undefined): OwnedNames {
  return ownedNames(credentialsOf(authentication).flatMap((one) => credentialQueryKey(one) ?? []));
}

/**
 * Returns the location of a credential for the name of its stored value, so this text must never change.
 * `server-rules.ts` decides if two credentials of one configuration could be confused.
 */
function credentialLocation(authentication: Authentication): string {
  const { type, cookie = '' } = authentication;
  if (type === 'Cookie') return `cookie:${cookie}`;
  const key = credentialQueryKey(authentication);
  if (key !== undefined) return `query:${key.toLowerCase()}`;
  return `header:${foldedHeader(credentialHeader(authentication) ?? '')}`;
}

/** Returns the field value for a token (spec 2.2, scheme meanings). */
export function credentialValue({ type }: Authentication, token: string): string {
  if (type === 'ClientCredentials') return `Bearer ${token}`;
  return type === 'Bearer' || type === 'Basic' ? `${type} ${token}` : token;
}

const sealedFieldNames = ['token', 'password', 'client_secret', 'secret_access_key', 'session_token'] as const;
type SealedFieldName = (typeof sealedFieldNames)[number];

/** A credential field that holds the secret itself: its path, and the name under which its value is stored. */
type SealedField = { path: string; name: string; value: string };

/** Returns the names of the credential fields that hold a secret instead of a reference to one. */
function ownSecretsOf(one: Authentication): SealedFieldName[] {
  return sealedFieldNames.filter((field) => {
    const value = one[field];
    return value !== undefined && value !== '' && placeholderNames(value).length === 0;
  });
}

/**
 * Returns the fields that hold a secret instead of a reference to one. They are encrypted and masked. In a list, the
 * name contains the location of the credential, so that reordering entries never gives one the secret of another.
 */
export function sealedFields(config: Credentials): SealedField[] {
  return everyCredential(config).flatMap(({ one, path, storedAs }) =>
    ownSecretsOf(one).map((field) => ({
      path: `${path}.${field}`,
      name: `${storedAs}.${field}`,
      value: one[field] ?? '',
    })),
  );
}

/** Returns the credentials with a mask in place of each literal secret. */
export function maskedCredentials({ authentication, credentials }: Credentials, mask: string): Credentials {
  const masked = (one: Authentication): Authentication => ({
    ...one,
    ...Object.fromEntries(ownSecretsOf(one).map((field) => [field, mask])),
  });
  const each = (given: Authentications): Authentications => (Array.isArray(given) ? given.map(masked) : masked(given));
  return {
    ...(authentication && { authentication: each(authentication) }),
    ...(credentials && {
      credentials: Object.fromEntries(Object.entries(credentials).map(([name, given]) => [name, each(given)])),
    }),
  };
}

/** Credential fields that may contain placeholders. */
export const filledFields = [...sealedFieldNames, 'user', 'client_id', 'access_key_id'] as const;
export type FilledField = (typeof filledFields)[number];

export function isSealedField(field: FilledField): field is SealedFieldName {
  return (sealedFieldNames as readonly string[]).includes(field);
}
