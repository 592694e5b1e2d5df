import { covers, type KeyScope } from '../domain/credentials/scopes.ts';

type Key = { scopes: readonly KeyScope[]; servers?: readonly string[] | undefined };

/** The address at which the commands look for a service when nobody says where it is. */
const usualUrl = 'http://127.0.0.1:8080';
const bearer = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** Commands to begin with, only such as the key may use. `url` is where the service is. */
export function firstCommands(key: Key, url: string): string[] {
  return ['export TOOLHOST_API_KEY=…', ...(url === usualUrl ? [] : [`export TOOLHOST_URL=${url}`]), ...uses(key, url)];
}

function uses({ scopes, servers }: Key, url: string): string[] {
  const slug = servers?.[0] ?? 'SLUG';
  if (covers(scopes, 'manage:read')) return ['bin/toolhost servers list', `curl ${url}/api/v1/servers ${bearer}`];
  if (covers(scopes, 'call')) {
    return [
      `bin/toolhost call ${slug} TOOL --arg name=value`,
      `curl ${url}/api/v1/servers/${slug}/tools/TOOL/call ${bearer} -H 'Content-Type: application/json' -d '{"arguments": {}}'`,
      `claude mcp add --transport http ${slug} ${url}/mcp/${slug} --header "Authorization: Bearer $TOOLHOST_API_KEY"`,
    ];
  }
  return [`bin/toolhost servers ${servers ? 'update' : 'create'} server.yaml`];
}
