import { claudeCodeCommand } from '../../domain/clients/terminal-clients.ts';
import { covers, type KeyScope } from '../../domain/credentials/scopes.ts';
import { programName } from '../../version.ts';

type Key = {
  scopes: readonly KeyScope[];
  servers?: readonly string[] | undefined;
  views?: readonly string[] | undefined;
};

/** The default address of the service for commands. */
const usualUrl = 'http://127.0.0.1:8080';
const bearer = '-H "Authorization: Bearer $TOOLHOST_API_KEY"';

/** First commands that the key may use. `url` is the address of the service. */
export function firstCommands(key: Key, url: string): string[] {
  return ['export TOOLHOST_API_KEY=…', ...(url === usualUrl ? [] : [`export TOOLHOST_URL=${url}`]), ...uses(key, url)];
}

function uses({ scopes, servers, views }: Key, url: string): string[] {
  const [view] = views ?? [];
  if (view !== undefined && !servers) return [connectCommand(view, url)];
  const slug = servers?.[0] ?? 'SLUG';
  if (covers(scopes, 'manage:read')) return [`${programName} servers list`, `curl ${url}/api/v1/servers ${bearer}`];
  if (covers(scopes, 'call')) {
    return [
      `${programName} call ${slug} TOOL --arg name=value`,
      `curl ${url}/api/v1/servers/${slug}/tools/TOOL/call ${bearer} -H 'Content-Type: application/json' -d '{"arguments": {}}'`,
      connectCommand(slug, url),
    ];
  }
  return [`${programName} servers ${servers ? 'update' : 'create'} server.yaml`];
}

/** The address is a slug, or `slug/view`. */
function connectCommand(address: string, url: string): string {
  const name = address.replace('/', '-');
  return claudeCodeCommand({ name, url: `${url}/mcp/${address}`, token: '$TOOLHOST_API_KEY' });
}
