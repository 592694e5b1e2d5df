import type { Problem } from '@toolhost/errors/errors';
import { authenticationsSchema } from '@toolhost/tool-config/authentication';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { findOauthProblems } from '@toolhost/tool-config/provider-rules';
import { findAuthenticationProblems, type UrlRule } from '@toolhost/tool-config/server-rules';
import { maxUrlLength } from '@toolhost/tool-config/tool';
import type { ApiDescription, ApiScheme } from '../model.ts';
import type { RequiredSecret } from '../plan-outline.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import { toPlainText } from '../tools/texts.ts';

/** Field of `login` for a secret that a person brings. */
export type PersonalField = { name: string; label: string; secret?: false; optional?: true };

/** Configuration fields that define how requests are authorized. */
export type CredentialFields = {
  authentication?: object | object[];
  credentials?: Record<string, object | object[]>;
  oauth?: object;
  secrets: RequiredSecret[];
  /** Inputs for the secrets, if each person brings their own. */
  personalFields: PersonalField[];
  /** Notes about logins, such as the reason why people cannot log in. */
  notes: string[];
};

export type AuthenticationSource = {
  scopes: readonly string[];
  answers: Readonly<Record<string, string>>;
  description: ApiDescription;
  /** Returns the reason why the deployment may not call an address. */
  urlProblem: UrlRule;
  /** Names that are taken by variables and cannot be used for secrets. */
  takenNames: ReadonlySet<string>;
  /** Names of secrets assigned so far, by scheme and part of the credential, such as its user or password. */
  secretNames: Map<string, string>;
};

export function buildAuthentication(schemes: readonly ApiScheme[], source: AuthenticationSource): CredentialFields {
  const fields: CredentialFields = { secrets: [], personalFields: [], notes: [] };
  const entries = schemes.flatMap((scheme) => toEntries(scheme, fields, source));
  const [firstEntry] = entries;
  if (firstEntry !== undefined) fields.authentication = entries.length === 1 ? firstEntry : entries;
  return fields;
}

/**
 * Returns the schemes. Marks a scheme that a configuration would reject as unsupported, such as a key in the Host
 * header.
 */
export function markUnusableSchemes(description: ApiDescription, urlProblem: UrlRule): ApiDescription['schemes'] {
  const source = {
    scopes: [],
    answers: {},
    description,
    urlProblem,
    takenNames: new Set<string>(),
    secretNames: new Map<string, string>(),
  };
  const checked = [...description.schemes].map(([name, scheme]): [string, ApiScheme] => {
    const { authentication } = buildAuthentication([scheme], source);
    const [problem] = authentication === undefined ? [] : findProblems(authentication, urlProblem);
    if (!problem) return [name, scheme];
    const reason = `the credential ${quoteShort(name)} cannot be sent: ${problem.path}: ${problem.message}`;
    return [name, { ...scheme, kind: 'unsupported', reason }];
  });
  return new Map(checked);
}

function findProblems(authentication: object, urlProblem: UrlRule): Problem[] {
  const parsed = authenticationsSchema.safeParse(authentication, { reportInput: false });
  if (!parsed.success) return parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  return findAuthenticationProblems(parsed.data, { hasLogin: false, urlProblem, variables: undefined });
}

function toEntries(scheme: ApiScheme, fields: CredentialFields, source: AuthenticationSource): object[] {
  const secretPlaceholder = (suffix: string, label: string, sentAs: string) =>
    createPlaceholder(scheme, suffix, label, { fields, source, sentAs });
  switch (scheme.kind) {
    case 'bearer':
      return [{ type: 'Bearer', token: secretPlaceholder('TOKEN', 'Bearer token', 'header Authorization') }];
    case 'basic':
      return [
        {
          type: 'Basic',
          user: secretPlaceholder('USER', 'User name', 'header Authorization'),
          password: secretPlaceholder('PASSWORD', 'Password', 'header Authorization'),
        },
      ];
    case 'key':
      return [
        toKeyEntry(
          scheme,
          secretPlaceholder('KEY', 'API key', `${formatLocation(scheme)} ${toPlainText(scheme.parameter ?? '', 100)}`),
        ),
      ];
    case 'oauth2':
      return toOauthEntry(scheme, fields, source);
    case 'aws':
      return [toAwsEntry(scheme, fields, source)];
    default:
      return [];
  }
}

function formatLocation({ in: location }: ApiScheme): string {
  return location === 'query' ? 'query parameter' : (location ?? 'header');
}

function toKeyEntry({ in: location, parameter = '', prefix = '' }: ApiScheme, token: string): object {
  if (location === 'cookie') return { type: 'Cookie', cookie: parameter, token };
  if (location === 'query') return { type: 'QueryParam', query_key: parameter, token };
  if (/^authorization$/i.test(parameter) && /^bearer $/i.test(prefix)) return { type: 'Bearer', token };
  const header = /^authorization$/i.test(parameter) ? {} : { header: parameter };
  return { type: 'ApiKey', ...header, token: `${prefix}${token}` };
}

/** Creates the login of an OAuth application if its client ID and secret are known, and otherwise one stored token. */
function toOauthEntry(scheme: ApiScheme, fields: CredentialFields, source: AuthenticationSource): object[] {
  const { answers, scopes } = source;
  const { client_id: clientId, client_secret: clientSecret } = answers;
  const { authorizationUrl, tokenUrl, clientTokenUrl } = scheme;
  if (clientId && clientSecret && isHttps(authorizationUrl) && isHttps(tokenUrl)) {
    const urls = { authorization_url: authorizationUrl, token_url: tokenUrl };
    const [problem] = findOauthProblems(urls, source.urlProblem);
    if (!problem) {
      fields.oauth = { ...urls, client_id: clientId, client_secret: clientSecret, scopes };
      return [{ type: 'Bearer' }];
    }
    fields.notes.push(`People cannot log in: ${problem.path}: ${problem.message}.`);
  }
  if (isTokenUrl(clientTokenUrl, source.urlProblem) && authorizationUrl === undefined) {
    const client_id = createPlaceholder(scheme, 'CLIENT_ID', 'Client id', { fields, source });
    const client_secret = createPlaceholder(scheme, 'CLIENT_SECRET', 'Client secret', { fields, source });
    return [
      {
        type: 'ClientCredentials',
        token_url: clientTokenUrl,
        client_id,
        client_secret,
        ...(scopes.length > 0 && { scopes }),
      },
    ];
  }
  fields.notes.push(
    'A stored access token expires when the provider decides. With client_id and client_secret, people log in instead.',
  );
  return [{ type: 'Bearer', token: createPlaceholder(scheme, 'TOKEN', 'Access token', { fields, source }) }];
}

/** Returns true if client credentials can be exchanged at an address. */
function isTokenUrl(url: string | undefined, urlProblem: UrlRule): url is string {
  if (!isHttps(url)) return false;
  const entry = { type: 'ClientCredentials', token_url: url, client_id: 'x', client_secret: 'x' };
  return findProblems(entry, urlProblem).length === 0;
}

function isHttps(url: string | undefined): url is string {
  return (
    url !== undefined &&
    url.length <= maxUrlLength &&
    /^https:\/\/[^/{}]+/i.test(url) &&
    parseUrl(url) !== undefined &&
    !url.includes('{')
  );
}

function toAwsEntry(
  { aws }: ApiScheme,
  fields: CredentialFields,
  { answers, description }: AuthenticationSource,
): object {
  const host = /^https?:\/\/([a-z0-9-]+)[.]/i.exec(description.servers[0]?.url ?? '')?.[1] ?? '';
  const region = description.servers.flatMap(({ variables }) => variables).find(({ name }) => name === 'region');
  addSecret(fields, 'AWS_ACCESS_KEY_ID', 'Access key id');
  addSecret(fields, 'AWS_SECRET_ACCESS_KEY', 'Secret access key');
  return {
    type: 'AwsSigV4',
    access_key_id: '{{AWS_ACCESS_KEY_ID}}',
    secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}',
    region: answers.region ?? [aws?.region, region?.fallback].find(isAwsName) ?? 'us-east-1',
    service: answers.service ?? [aws?.service, host.toLowerCase()].find(isAwsName) ?? 'execute-api',
  };
}

type SecretTarget = {
  fields: CredentialFields;
  source: AuthenticationSource;
  /** Part of each request that contains the secret, such as `header X-API-Key`. */
  sentAs?: string;
};

function isAwsName(text: string | undefined): text is string {
  return text !== undefined && /^[a-z0-9-]{1,100}$/.test(text);
}

function createPlaceholder(
  { name, kind, description }: ApiScheme,
  suffix: string,
  label: string,
  { fields, source, sentAs }: SecretTarget,
): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== '');
  const lastWord = suffix.split('_').at(-1) ?? suffix;
  const isNamed = words.includes(lastWord) || (lastWord === 'KEY' && /KEY|TOKEN|SECRET/.test(words.join('_')));
  const base = (isNamed ? words : [...words, suffix])
    .join('_')
    .replace(/^(?=\d)/, '_')
    .slice(0, 60);
  // Two schemes may suggest one name, and a variable would be sent instead of a secret with the same name.
  const key = `${name}\0${suffix}`;
  const usedNames = new Set(source.secretNames.values());
  let secretName = source.secretNames.get(key) ?? base;
  if (!source.secretNames.has(key))
    for (let count = 2; source.takenNames.has(secretName) || usedNames.has(secretName); count++)
      secretName = `${base}_${count}`;
  source.secretNames.set(key, secretName);
  const text = toPlainText(description, 200);
  const usage = sentAs === undefined ? label : `${label}, sent as ${sentAs}`;
  addSecret(fields, secretName, text === '' ? usage : `${usage}: ${text}`);
  // OAuth tokens expire, and a token of client credentials belongs to the server.
  if (kind !== 'oauth2' && !fields.personalFields.some((field) => field.name === secretName))
    fields.personalFields.push({ name: secretName, label, ...(suffix === 'USER' && { secret: false }) });
  return `{{${secretName}}}`;
}

function addSecret(fields: CredentialFields, name: string, description: string): void {
  if (!fields.secrets.some((secret) => secret.name === name)) fields.secrets.push({ name, description });
}
