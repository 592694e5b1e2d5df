import type { ApiDescription, ApiScheme } from '../model.ts';
import { plainText } from '../tools/texts.ts';

/** A stored secret that the configuration names, and what it is. */
export type NeededSecret = { name: string; description: string };

/** The fields of the configuration that say how requests are authorised. */
export type CredentialFields = {
  authentication?: object | object[];
  oauth?: object;
  secrets: NeededSecret[];
  /** Where the secrets are written as something else than the person has. */
  notes: string[];
};

export type AuthenticationSource = {
  scopes: readonly string[];
  answers: Readonly<Record<string, string>>;
  description: ApiDescription;
};

export function authenticationOf(schemes: readonly ApiScheme[], source: AuthenticationSource): CredentialFields {
  const fields: CredentialFields = { secrets: [], notes: [] };
  const entries = schemes.flatMap((scheme) => entryOf(scheme, fields, source));
  const [only] = entries;
  if (only !== undefined) fields.authentication = entries.length === 1 ? only : entries;
  return fields;
}

function entryOf(scheme: ApiScheme, fields: CredentialFields, source: AuthenticationSource): object[] {
  const secret = (suffix: string, what: string) => placeholder(scheme, suffix, what, fields);
  switch (scheme.kind) {
    case 'bearer':
      return [{ type: 'Bearer', token: secret('TOKEN', 'Bearer token') }];
    case 'basic':
      return [{ type: 'Basic', user: secret('USER', 'User name'), password: secret('PASSWORD', 'Password') }];
    case 'key':
      return [keyEntry(scheme, secret('KEY', 'Key'))];
    case 'oauth2':
      return oauthEntry(scheme, fields, source);
    case 'aws':
      return [awsEntry(fields, source)];
    default:
      return [];
  }
}

function keyEntry({ in: location, parameter = '', prefix }: ApiScheme, token: string): object {
  if (location === 'cookie') return { type: 'Cookie', cookie: parameter, token };
  if (location === 'query') return { type: 'QueryParam', query_key: parameter, token };
  if (/^authorization$/i.test(parameter) && /^bearer $/i.test(prefix)) return { type: 'Bearer', token };
  const header = /^authorization$/i.test(parameter) ? {} : { header: parameter };
  return { type: 'ApiKey', ...header, token: `${prefix}${token}` };
}

/** People log in when the keys of an application are given, otherwise one access token is stored. */
function oauthEntry(scheme: ApiScheme, fields: CredentialFields, source: AuthenticationSource): object[] {
  const { answers, scopes } = source;
  const { client_id: id, client_secret: key } = answers;
  const { authorizationUrl, tokenUrl, clientTokenUrl } = scheme;
  if (id && key && isHttps(authorizationUrl) && isHttps(tokenUrl)) {
    fields.oauth = {
      authorization_url: authorizationUrl,
      token_url: tokenUrl,
      client_id: id,
      client_secret: key,
      scopes,
    };
    return [{ type: 'Bearer' }];
  }
  if (isHttps(clientTokenUrl) && authorizationUrl === undefined) {
    const client_id = placeholder(scheme, 'CLIENT_ID', 'Client id', fields);
    const client_secret = placeholder(scheme, 'CLIENT_SECRET', 'Client secret', fields);
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
    'An access token that is stored ends when the provider says; with client_id and client_secret people log in.',
  );
  return [{ type: 'Bearer', token: placeholder(scheme, 'TOKEN', 'Access token', fields) }];
}

function isHttps(url: string | undefined): url is string {
  return url !== undefined && /^https:\/\/[^/{}]+/i.test(url) && URL.canParse(url) && !url.includes('{');
}

function awsEntry(fields: CredentialFields, { answers, description }: AuthenticationSource): object {
  const host = /^https?:\/\/([a-z0-9-]+)[.]/i.exec(description.servers[0]?.url ?? '')?.[1] ?? '';
  const region = description.servers.flatMap(({ variables }) => variables).find(({ name }) => name === 'region');
  add(fields, 'AWS_ACCESS_KEY_ID', 'Access key id');
  add(fields, 'AWS_SECRET_ACCESS_KEY', 'Secret access key');
  return {
    type: 'AwsSigV4',
    access_key_id: '{{AWS_ACCESS_KEY_ID}}',
    secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}',
    region: answers.region ?? region?.fallback ?? 'us-east-1',
    service: answers.service ?? (host || 'execute-api'),
  };
}

function placeholder({ name, description }: ApiScheme, suffix: string, what: string, fields: CredentialFields): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== '');
  const last = suffix.split('_').at(-1) ?? suffix;
  const isNamed = words.includes(last) || (last === 'KEY' && /KEY|TOKEN|SECRET/.test(words.join('_')));
  const base = (isNamed ? words : [...words, suffix])
    .join('_')
    .replace(/^(?=\d)/, '_')
    .slice(0, 60);
  // Two schemes may have the same name in letters that a secret can have.
  let own = base;
  for (let count = 2; fields.secrets.some((secret) => secret.name === own); count++) own = `${base}_${count}`;
  const text = plainText(description, 200);
  add(fields, own, text === '' ? what : `${what}: ${text}`);
  return `{{${own}}}`;
}

function add(fields: CredentialFields, name: string, description: string): void {
  if (!fields.secrets.some((secret) => secret.name === name)) fields.secrets.push({ name, description });
}
