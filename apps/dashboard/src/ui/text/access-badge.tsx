import { Badge, Tooltip } from '@mantine/core';
import type { Access, ServerRecord } from '../../api-types.ts';

export const accessKinds: Record<Access | 'open', { name: string; text: string }> = {
  login: {
    name: 'Login',
    text: 'People log in with their Toolhost account. The API receives the stored credential or their own values.',
  },
  oauth: {
    name: 'Login (OAuth)',
    text: 'People log in at the provider. Agents hold a Toolhost token.',
  },
  passthrough: {
    name: 'Login (passthrough)',
    text: "People log in at the provider. Agents hold the provider's token.",
  },
  api_key: {
    name: 'API key',
    text: 'Callers send a workspace API key. The API receives the stored credential.',
  },
  caller_token: {
    name: "Caller's token",
    text: 'Callers send their own API token, which is forwarded.',
  },
  open: {
    name: 'Open',
    text: 'No credential is sent to the API. Callers send a workspace API key or any other token.',
  },
};

export function AccessBadge({ server: { access, open } }: { server: ServerRecord }) {
  const kind = accessKinds[open ? 'open' : access];
  return (
    <Tooltip label={kind.text} multiline maw={280}>
      <Badge miw="max-content">{kind.name}</Badge>
    </Tooltip>
  );
}
