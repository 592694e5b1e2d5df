import { Badge, Tooltip } from '@mantine/core';
import type { Access, ServerRecord } from '../../answers.ts';

const kinds: Record<Access | 'open', { name: string; text: string; color: string }> = {
  oauth: { name: 'Login', text: 'People log in at the provider; agents hold a token of Toolhost.', color: 'accent' },
  passthrough: {
    name: 'Login, passed through',
    text: "People log in at the provider; agents hold the provider's own token.",
    color: 'accent',
  },
  api_key: {
    name: 'API key',
    text: 'Callers send an API key of this workspace; the API receives the stored credential.',
    color: 'green',
  },
  caller_token: {
    name: "Caller's token",
    text: 'Callers send their own token of the API, which is passed on.',
    color: 'gray',
  },
  open: {
    name: 'Open',
    text: 'No credential is sent to the API. Callers send an API key of this workspace, or any other token.',
    color: 'gray',
  },
};

export function AccessBadge({ server: { access, open } }: { server: ServerRecord }) {
  const kind = kinds[open ? 'open' : access];
  return (
    <Tooltip label={kind.text} multiline maw={280}>
      <Badge color={kind.color} miw="max-content">
        {kind.name}
      </Badge>
    </Tooltip>
  );
}
