import { covers, type KeyScope } from '../../domain/credentials/scopes.ts';
import { programName } from '../../version.ts';

type Key = { scopes: readonly KeyScope[]; servers?: readonly string[] | undefined };

/** The default address of the service for commands. */
const usualUrl = 'http://127.0.0.1:8080';
const bearer = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** First commands that the key may use. `url` is the address of the service. */
export function firstCommands(key: Key, url: string): string[] {
  return ['export TOOLHOST_API_KEY=…', ...(url === usualUrl ? [] : [`export TOOLHOST_URL=${url}`]), ...uses(key, url)];
}

function uses({ scopes, servers }: Key, url: string): string[] {
  const slug = servers?.[0] ?? 'SLUG';
  if (covers(scopes, 'manage:read')) return [`${programName} servers list`, `curl ${url}/api/v1/servers ${bearer}`];
  if (covers(scopes, 'call')) {
    return [
      `${programName} call ${slug} TOOL --arg name=value`,
      `curl ${url}/api/v1/servers/${slug}/tools/TOOL/call ${bearer} -H 'Content-Type: application/json' -d '{"arguments": {}}'`,
      `claude mcp add --transport http ${slug} ${url}/mcp/${slug} --header "Authorization: Bearer $TOOLHOST_API_KEY"`,
    ];
  }
  return [`${programName} servers ${servers ? 'update' : 'create'} server.yaml`];
}
