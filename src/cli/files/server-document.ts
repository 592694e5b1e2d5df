import { sealedFields } from '../../domain/config/authentication.ts';
import { configSecrets, mask, type ServerConfig } from '../../domain/config/server-config.ts';
import { limitFieldNames } from '../../operations/limit-fields.ts';
import { oneServer } from '../connection/one-server.ts';
import type { RestClient } from '../connection/rest-client.ts';
import type { ConfigFields, SecretReferences } from './server-files.ts';

/** Everything that the service has of a server, as a file describes it. Of secrets only the names. */
export async function documentOf(client: RestClient, slug: string): Promise<ConfigFields> {
  const { config, secrets } = await oneServer(client, slug);
  const limits = await client.run('getServerLimits', { slug });
  const set = limitFieldNames.flatMap((field) => {
    const value = limits[field]?.set;
    return value === undefined ? [] : [[field, value] as const];
  });
  const { tools, ...fields } = config;
  const names = [...sealedPaths(config as unknown as ServerConfig), ...secrets];
  return {
    ...fields,
    ...(names.length > 0 && { secrets: Object.fromEntries(names.map((name) => [name, 'stored'])) }),
    ...(set.length > 0 && { limits: Object.fromEntries(set) }),
    tools,
  };
}

function sealedPaths(config: ServerConfig): string[] {
  const sealed = sealedFields(config).filter(({ value }) => value === mask);
  return [
    ...(config.oauth?.client_secret !== undefined ? [configSecrets.clientSecret] : []),
    ...sealed.map(({ path }) => path),
  ];
}

/** The same where a file has it already: the sources of secrets that the file names stay. */
export function keepingSources(document: ConfigFields, known: SecretReferences): ConfigFields {
  const { tools, limits, secrets, ...fields } = document;
  const all = { ...known };
  for (const name of Object.keys((secrets ?? {}) as SecretReferences)) all[name] ??= 'stored';
  return {
    ...fields,
    ...(Object.keys(all).length > 0 && { secrets: all }),
    ...(limits !== undefined && { limits }),
    tools,
  };
}
