import { z } from 'zod';
import { foldHeaderName, type OwnedNames, toOwnedNames } from './http/parameter-names.ts';
import { getPlaceholderNames } from './http/placeholders.ts';

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

const optionalText = (maxLength: number) => z.string().min(1).max(maxLength).optional();
/** User or password; either may be empty (RFC 7617, 2). */
const optionalOrEmptyText = (maxLength: number) => z.string().max(maxLength).optional();
/** Maximum number of characters of a scope, and of the value of an extra parameter. */
export const maxScopeLength = 200;
export const maxExtraParamLength = 1000;
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)');

/** A credential and how it is sent to the upstream (spec 2.2 and additional types). */
export const authenticationSchema = z.strictObject({
  type: z
    .enum(authenticationTypes)
    .describe(
      'Bearer and Basic prefix the token with that word. ApiKey sends it unchanged, QueryParam puts it in the URL, and Cookie puts it in a cookie. ClientCredentials requests a token at token_url (RFC 6749, 4.4). AwsSigV4 signs the request.',
    ),
  header: z.string().optional().describe('Header that carries the token. Defaults to Authorization.'),
  query_key: optionalText(64).describe('Query parameter for QueryParam. Defaults to api_key.'),
  cookie: optionalText(64).describe('Cookie name for Cookie.'),
  token: optionalText(8192).describe(
    'A stored credential that is sent with every call, normally "{{NAME}}". Callers then use a workspace API key.',
  ),
  user: optionalOrEmptyText(500).describe('Basic: user name of a stored credential, instead of token.'),
  password: optionalOrEmptyText(4096).describe(
    'Basic: password of a stored credential, normally "{{NAME}}". Use "" if the upstream accepts only a user name.',
  ),
  token_url: optionalText(2048).describe('ClientCredentials: token endpoint of the authorization server.'),
  client_id: optionalText(500).describe('ClientCredentials: client ID.'),
  client_secret: optionalText(4096).describe('ClientCredentials: client secret, normally "{{NAME}}".'),
  scopes: z.array(scope).max(100).optional().describe('ClientCredentials: scopes to request.'),
  audience: optionalText(1000).describe('ClientCredentials: audience to request.'),
  resource: optionalText(1000).describe('ClientCredentials: resource to request (RFC 8707).'),
  client_auth: z
    .enum(['basic', 'body'])
    .optional()
    .describe('ClientCredentials: how the client authenticates: with HTTP Basic (default) or in the body.'),
  extra_params: z
    .record(z.string().min(1).max(100), z.string().max(maxExtraParamLength))
    .refine((params) => Object.keys(params).length <= 50, 'allowed: at most 50 parameters')
    .optional()
    .describe('ClientCredentials: additional token request parameters.'),
  access_key_id: optionalText(200).describe('AwsSigV4: access key ID.'),
  secret_access_key: optionalText(4096).describe('AwsSigV4: secret access key, normally "{{NAME}}".'),
  session_token: optionalText(8192).describe('AwsSigV4: session token of temporary credentials, normally "{{NAME}}".'),
  region: optionalText(100).describe('AwsSigV4: region, such as eu-central-1.'),
  service: optionalText(100).describe('AwsSigV4: service signing name, such as execute-api or s3.'),
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
export function toCredentialList(authentication: Authentications | undefined): readonly Authentication[] {
  if (authentication === undefined) return [];
  return Array.isArray(authentication) ? authentication : [authentication];
}

/** Returns the path of one entry of `authentications`. `parentPath` is the path of `authentications` itself. */
export function credentialPath(authentications: Authentications, index: number, parentPath = 'authentication'): string {
  return Array.isArray(authentications) ? `${parentPath}[${index}]` : parentPath;
}

/** Credentials of a configuration: the default for its tools, and named ones that a tool may use instead. */
export type Credentials = {
  authentication?: Authentications | undefined;
  credentials?: Readonly<Record<string, Authentications>> | undefined;
};

/** Value of a tool's `credential` that sends no credential. No named credential may have this name. */
export const noCredential = 'none';
export const credentialNamePattern = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/;
export const maxNamedCredentials = 20;

/** Returns the credential that a tool of a valid configuration sends. */
export function getToolAuthentication(
  { authentication, credentials = {} }: Credentials,
  { credential }: { credential?: string | undefined },
): Authentications | undefined {
  if (credential === undefined) return authentication;
  return Object.hasOwn(credentials, credential) ? credentials[credential] : undefined;
}

/** Credential of a configuration. Its secret values are stored under names with `storedNamePrefix`. */
type CredentialEntry = { credential: Authentication; path: string; storedNamePrefix: string };

/** Lists every credential of a configuration. */
export function listCredentials({ authentication, credentials = {} }: Credentials): CredentialEntry[] {
  const namedEntries = Object.entries(credentials).map(([name, authentications]): [string, Authentications] => [
    `credentials.${name}`,
    authentications,
  ]);
  const entries =
    authentication === undefined ? namedEntries : [['authentication', authentication] as const, ...namedEntries];
  return entries.flatMap(([parentPath, authentications]) =>
    toCredentialList(authentications).map((credential, index) => ({
      credential,
      path: credentialPath(authentications, index, parentPath),
      storedNamePrefix: Array.isArray(authentications)
        ? `${parentPath}[${getCredentialLocation(credential)}]`
        : parentPath,
    })),
  );
}

/** Returns the prefix of the names under which the values of a credential are stored. */
export function getStoredNamePrefix(config: Credentials, credential: Authentication): string {
  const cached = storedNamePrefixes.get(credential);
  if (cached !== undefined) return cached;
  const prefix = listCredentials(config).find((entry) => entry.credential === credential)?.storedNamePrefix ?? '';
  storedNamePrefixes.set(credential, prefix);
  return prefix;
}

/** Prefixes by credential object, which belongs to one configuration. Each call needs them. */
const storedNamePrefixes = new WeakMap<Authentication, string>();

/** Fields of each type besides `type`. `required` lists the mandatory ones. */
export const fieldsByType: Record<AuthenticationType, { required: readonly Field[]; optional: readonly Field[] }> = {
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
  const names = toCredentialList(authentication).flatMap((credential) =>
    credential.type === 'AwsSigV4' ? signatureHeaders : (credentialHeader(credential) ?? []),
  );
  return new Set(names.map(foldHeaderName));
}

/** Returns the query parameter that carries the credential, or undefined if it is sent elsewhere. */
export function credentialQueryKey({ type, query_key }: Authentication): string | undefined {
  return type === 'QueryParam' ? (query_key ?? 'api_key') : undefined;
}

/** Returns the query parameters of the credentials, in the form that is used for comparing names. */
export function credentialQueryNames(authentication: Authentications | undefined): OwnedNames {
  return toOwnedNames(toCredentialList(authentication).flatMap((credential) => credentialQueryKey(credential) ?? []));
}

/** Returns the location of a credential. The names of stored values contain this text, so it must never change. */
function getCredentialLocation(authentication: Authentication): string {
  const { type, cookie = '' } = authentication;
  if (type === 'Cookie') return `cookie:${cookie}`;
  const key = credentialQueryKey(authentication);
  if (key !== undefined) return `query:${key.toLowerCase()}`;
  return `header:${foldHeaderName(credentialHeader(authentication) ?? '')}`;
}

/** A credential as it is sent. `prefix` replaces the scheme of a login token (`oauth.token_prefix`). */
export type SentCredential = Authentication & { prefix?: string };

/** Returns the credentials as they are sent: the one that carries the login token has the prefix. */
export function withTokenPrefix(
  authentication: Authentications | undefined,
  prefix: string | undefined,
): readonly SentCredential[] {
  const credentials = toCredentialList(authentication);
  if (prefix === undefined) return credentials;
  return credentials.map((credential) => (isStored(credential) ? credential : { ...credential, prefix }));
}

/** Returns the field value for a token (spec 2.2, scheme meanings). */
export function credentialValue({ type, prefix }: SentCredential, token: string): string {
  if (prefix !== undefined) return prefix === '' ? token : `${prefix} ${token}`;
  if (type === 'ClientCredentials') return `Bearer ${token}`;
  return type === 'Bearer' || type === 'Basic' ? `${type} ${token}` : token;
}

const sealedFieldNames = ['token', 'password', 'client_secret', 'secret_access_key', 'session_token'] as const;
type SealedFieldName = (typeof sealedFieldNames)[number];

/** Credential field that holds the secret itself: its path, and the name under which its value is stored. */
type SealedField = { path: string; name: string; value: string };

/** Returns the names of the credential fields that hold a secret instead of a reference to one. */
function getLiteralSecretFields(credential: Authentication): SealedFieldName[] {
  return sealedFieldNames.filter((field) => {
    const value = credential[field];
    return value !== undefined && value !== '' && getPlaceholderNames(value).length === 0;
  });
}

/**
 * Returns the fields that hold a secret instead of a reference to one. They are encrypted and masked. In a list, the
 * name contains the location of the credential, so that reordering entries never gives one the secret of another.
 */
export function sealedFields(config: Credentials): SealedField[] {
  return listCredentials(config).flatMap(({ credential, path, storedNamePrefix }) =>
    getLiteralSecretFields(credential).map((field) => ({
      path: `${path}.${field}`,
      name: `${storedNamePrefix}.${field}`,
      value: credential[field] ?? '',
    })),
  );
}

/** Returns the credentials with a mask in place of each literal secret. */
export function maskCredentials({ authentication, credentials }: Credentials, mask: string): Credentials {
  const maskCredential = (credential: Authentication): Authentication => ({
    ...credential,
    ...Object.fromEntries(getLiteralSecretFields(credential).map((field) => [field, mask])),
  });
  const maskAll = (authentications: Authentications): Authentications =>
    Array.isArray(authentications) ? authentications.map(maskCredential) : maskCredential(authentications);
  return {
    ...(authentication && { authentication: maskAll(authentication) }),
    ...(credentials && {
      credentials: Object.fromEntries(
        Object.entries(credentials).map(([name, authentications]) => [name, maskAll(authentications)]),
      ),
    }),
  };
}

/** Credential fields that may contain placeholders. */
export const placeholderFields = [...sealedFieldNames, 'user', 'client_id', 'access_key_id'] as const;
export type PlaceholderField = (typeof placeholderFields)[number];

export function isSealedField(field: PlaceholderField): field is SealedFieldName {
  return (sealedFieldNames as readonly string[]).includes(field);
}
