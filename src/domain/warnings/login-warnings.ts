import {
  type Authentication,
  type Authentications,
  credentialQueryNames,
  everyCredential,
} from '../config/authentication.ts';
import { argumentsOf } from '../config/input-schema.ts';
import { bodyKindOf } from '../config/sending/destinations.ts';
import type { ServerConfig } from '../config/server-config.ts';
import type { Tool } from '../config/tool.ts';
import { isReadAs } from '../http/parameter-names.ts';
import { readUrl } from '../http/read-url.ts';

type Remark = { path: string; message: string };

/** Warnings for settings of `oauth` and of credentials that are valid but will probably not work. */
export function loginWarnings(config: ServerConfig): Remark[] {
  const { oauth, authentication } = config;
  const warnings = everyCredential(config).flatMap(({ one, path }) =>
    credentialWarnings(one).map((warning) => ({ ...warning, path: `${path}.${warning.path}` })),
  );
  warnings.push(...unusedCredentials(config));
  if (!oauth) return warnings;
  const warn = (path: string, message: string) => warnings.push({ path, message });
  if (!authentication) {
    warn(
      'authentication',
      'is missing, so the token of a login is never sent to the upstream; say how it is sent, for example {"type": "Bearer"}',
    );
  }
  if (oauth.authorization_url === oauth.token_url) {
    warn('oauth.token_url', 'is the same address as authorization_url; a provider has one for people and one for us');
  } else if (hostOf(oauth.authorization_url) !== hostOf(oauth.token_url)) {
    warn(
      'oauth.token_url',
      'is on another host than authorization_url; make sure that both are yours or of one provider',
    );
  }
  for (const field of ['client_id', 'client_secret'] as const) {
    if (oauth[field] !== oauth[field]?.trim())
      warn(`oauth.${field}`, 'begins or ends with white space; is it part of it?');
  }
  return warnings;
}

function unusedCredentials({ credentials = {}, tools }: ServerConfig): Remark[] {
  const used = new Set(tools.map(({ credential }) => credential));
  const unused = Object.keys(credentials).filter((name) => !used.has(name));
  return unused.map((name) => ({ path: `credentials.${name}`, message: 'no tool names it in credential' }));
}

function credentialWarnings({ type, token }: Authentication): Remark[] {
  const isPrefixed =
    (type === 'Bearer' || type === 'Basic') && token?.toLowerCase().startsWith(`${type.toLowerCase()} `);
  if (!isPrefixed) return [];
  return [{ path: 'token', message: `begins with "${type} ", which the type ${type} adds already` }];
}

/** Arguments that the credential in the query replaces. */
export function replacedArguments(tool: Tool, at: string, authentication: Authentications | undefined): Remark[] {
  const credential = credentialQueryNames(authentication);
  const kind = bodyKindOf(tool);
  const inBody = kind === 'json' || kind === 'template';
  return argumentsOf(tool.input_schema)
    .filter(({ name, wire }) => isReadAs(wire.wire_name ?? name, credential))
    .map(({ name }) => ({
      path: `${at}.input_schema.${name}`,
      message: `could be taken for the credential in the query, so it is sent ${inBody ? 'only where it is part of a JSON body' : 'nowhere'}`,
    }));
}

function hostOf(url: string): string {
  return readUrl(url)?.host ?? url;
}
