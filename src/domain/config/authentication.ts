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
/** Of user and password one may be empty (RFC 7617, 2). */
const mayBeEmpty = (most: number) => z.string().max(most).optional();
/** Most characters of a scope, and of the value of an extra parameter. */
export const mostScope = 200;
export const mostExtra = 1000;
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'allowed: a scope without spaces (RFC 6749, 3.3)');

/** How a credential reaches the upstream (spec 2.2, and beyond it). */
export const authenticationSchema = z.strictObject({
  type: z
    .enum(authenticationTypes)
    .describe(
      'Bearer and Basic prefix the token with that word, ApiKey sends it as it is, QueryParam puts it in the URL, Cookie in a cookie. ClientCredentials gets a token at token_url (RFC 6749, 4.4), AwsSigV4 signs the request.',
    ),
  header: z.string().optional().describe('Header that carries the token; Authorization when absent.'),
  query_key: text(64).describe('Query parameter for QueryParam; api_key when absent.'),
  cookie: text(64).describe('Name of the cookie for Cookie.'),
  token: text(8192).describe(
    'A stored credential sent on every call, normally "{{NAME}}"; callers then use an API key of the workspace.',
  ),
  user: mayBeEmpty(500).describe('Basic: user name of a stored credential, in place of token.'),
  password: mayBeEmpty(4096).describe(
    'Basic: password of a stored credential, normally "{{NAME}}"; "" where the upstream takes only the user.',
  ),
  token_url: text(2048).describe('ClientCredentials: token endpoint of the authorization server.'),
  client_id: text(500).describe('ClientCredentials: id of the client.'),
  client_secret: text(4096).describe('ClientCredentials: secret of the client, normally "{{NAME}}".'),
  scopes: z.array(scope).max(100).optional().describe('ClientCredentials: scopes to request.'),
  audience: text(1000).describe('ClientCredentials: audience to request.'),
  resource: text(1000).describe('ClientCredentials: resource to request (RFC 8707).'),
  client_auth: z
    .enum(['basic', 'body'])
    .optional()
    .describe('ClientCredentials: how the client authenticates, with HTTP Basic (default) or in the body.'),
  extra_params: z
    .record(z.string().min(1).max(100), z.string().max(mostExtra))
    .refine((params) => Object.keys(params).length <= 50, 'allowed: at most 50 parameters')
    .optional()
    .describe('ClientCredentials: further parameters of the token request.'),
  access_key_id: text(200).describe('AwsSigV4: id of the access key.'),
  secret_access_key: text(4096).describe('AwsSigV4: the secret access key, normally "{{NAME}}".'),
  session_token: text(8192).describe('AwsSigV4: session token of temporary credentials, normally "{{NAME}}".'),
  region: text(100).describe('AwsSigV4: region, such as eu-central-1.'),
  service: text(100).describe('AwsSigV4: signing name of the service, such as execute-api or s3.'),
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

/** The credentials of a configuration as a list. */
export function credentialsOf(authentication: Authentications | undefined): readonly Authentication[] {
  if (authentication === undefined) return [];
  return Array.isArray(authentication) ? authentication : [authentication];
}

/** The path of an entry of `given`, which stands at `at`. */
export function credentialPath(given: Authentications, index: number, at = 'authentication'): string {
  return Array.isArray(given) ? `${at}[${index}]` : at;
}

/** The credentials of a configuration: that of its tools, and those that a tool may name instead. */
export type Credentials = {
  authentication?: Authentications | undefined;
  credentials?: Readonly<Record<string, Authentications>> | undefined;
};

/** What a tool names that is sent without a credential; no credential has this name. */
export const noCredential = 'none';
export const credentialNamePattern = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/;
export const mostNamedCredentials = 20;

/** The credential that a tool of a valid configuration is sent with. */
export function authenticationOfTool(
  { authentication, credentials = {} }: Credentials,
  { credential }: { credential?: string | undefined },
): Authentications | undefined {
  if (credential === undefined) return authentication;
  return Object.hasOwn(credentials, credential) ? credentials[credential] : undefined;
}

/** An entry of the credentials of a configuration: its path, and the beginning of the names of its stored values. */
type PlacedCredential = { one: Authentication; path: string; storedAs: string };

/** Every credential of a configuration. */
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

/** The beginning of the names of the stored values of a credential. */
export function storedNameOf(config: Credentials, one: Authentication): string {
  return everyCredential(config).find((placed) => placed.one === one)?.storedAs ?? '';
}

/** The fields of each type besides `type`; those that it needs come first. */
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

/** Headers that a signature of AWS consists of (Signature Version 4). */
export const signatureHeaders = ['Authorization', 'X-Amz-Date', 'X-Amz-Security-Token', 'X-Amz-Content-Sha256'];

/** Whether a credential is stored; otherwise it is the token of the caller or of a login. */
export function isStored({ type, token, user, password }: Authentication): boolean {
  if (type === 'ClientCredentials' || type === 'AwsSigV4') return true;
  return token !== undefined || user !== undefined || password !== undefined;
}

/** The header that carries the credential, or undefined when it goes elsewhere. */
export function credentialHeader({ type, header }: Authentication): string | undefined {
  return type === 'QueryParam' || type === 'Cookie' ? undefined : (header ?? 'Authorization');
}

/** All headers that carry a credential, folded for comparison. */
export function credentialHeaders(authentication: Authentications | undefined): Set<string> {
  const names = credentialsOf(authentication).flatMap((one) =>
    one.type === 'AwsSigV4' ? signatureHeaders : (credentialHeader(one) ?? []),
  );
  return new Set(names.map(foldedHeader));
}

/** The query parameter that carries the credential, or undefined when it goes elsewhere. */
export function credentialQueryKey({ type, query_key }: Authentication): string | undefined {
  return type === 'QueryParam' ? (query_key ?? 'api_key') : undefined;
}

/** The query parameters of the credentials as names are compared with them. */
export function credentialQueryNames(authentication: Authentications | undefined): OwnedNames {
  return ownedNames(credentialsOf(authentication).flatMap((one) => credentialQueryKey(one) ?? []));
}

/**
 * Where a credential goes, as a part of the name of its stored value; so this text never changes. Whether two credentials
 * of one configuration could be taken for one another is decided by `server-rules.ts`.
 */
function credentialLocation(authentication: Authentication): string {
  const { type, cookie = '' } = authentication;
  if (type === 'Cookie') return `cookie:${cookie}`;
  const key = credentialQueryKey(authentication);
  if (key !== undefined) return `query:${key.toLowerCase()}`;
  return `header:${foldedHeader(credentialHeader(authentication) ?? '')}`;
}

/** The field value for a token (spec 2.2, scheme meanings). */
export function credentialValue({ type }: Authentication, token: string): string {
  if (type === 'ClientCredentials') return `Bearer ${token}`;
  return type === 'Bearer' || type === 'Basic' ? `${type} ${token}` : token;
}

const sealedFieldNames = ['token', 'password', 'client_secret', 'secret_access_key', 'session_token'] as const;
type SealedFieldName = (typeof sealedFieldNames)[number];

/** A field of a credential that holds the secret itself: its path, and the name under which its value is stored. */
type SealedField = { path: string; name: string; value: string };

/** The names of the fields of a credential that hold a secret instead of a reference to one. */
function ownSecretsOf(one: Authentication): SealedFieldName[] {
  return sealedFieldNames.filter((field) => {
    const value = one[field];
    return value !== undefined && value !== '' && placeholderNames(value).length === 0;
  });
}

/**
 * The fields that hold a secret instead of a reference to one; they are sealed and masked. In a list the name says where
 * the credential goes, so that entries may change their order and none gets the secret of another.
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

/** The credentials with a mask in place of each secret that they hold themselves. */
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

/** Fields of a credential that placeholders fill. */
export const filledFields = [...sealedFieldNames, 'user', 'client_id', 'access_key_id'] as const;
export type FilledField = (typeof filledFields)[number];

export function isSealedField(field: FilledField): field is SealedFieldName {
  return (sealedFieldNames as readonly string[]).includes(field);
}
