import { Badge, Box, Button, Group, Stack, Text } from '@mantine/core';
import { Link } from 'react-router';
import type { ApiKey } from '../answers.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { Time } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';

type Act = ((key: ApiKey) => void) | undefined;
type Props = { keys: readonly ApiKey[]; onRevoke: Act; onReplace: Act };

function isOver(key: ApiKey): boolean {
  return key.revoked_at !== undefined || (key.expires_at !== undefined && Date.parse(key.expires_at) <= Date.now());
}

const columns: Column<ApiKey>[] = [
  {
    label: 'Key',
    cell: (key) => (
      <div>
        <Text fw={600} size="sm">
          {visible(key.name)}
        </Text>
        <Text size="xs" c="dimmed" className="th-mono">
          {key.id}
        </Text>
        {key.creator_left && !isOver(key) && (
          <Text size="xs" c="dimmed">
            Made by {visible(key.created_by_name ?? key.created_by)}; its maker has left the workspace.
          </Text>
        )}
      </div>
    ),
  },
  {
    label: 'May',
    cell: ({ scopes }) => (
      <Stack gap={4} align="flex-start">
        {scopes.map((scope) => (
          <Badge key={scope} miw="max-content" color={scope === 'call' ? 'accent' : 'gray'}>
            {scope}
          </Badge>
        ))}
      </Stack>
    ),
  },
  {
    label: 'Servers',
    cell: ({ servers, views }) =>
      servers || views ? <SlugList slugs={[...(servers ?? []), ...(views ?? [])]} /> : 'all',
  },
  { label: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'never') },
  { label: 'Status', cell: (key) => <Status apiKey={key} /> },
];

export function KeyList({ keys, onRevoke, onReplace }: Props) {
  const actions: Column<ApiKey> = {
    label: 'Actions',
    quiet: true,
    end: true,
    cell: (key) => (
      <Group gap={6} justify="flex-end" wrap="nowrap">
        <Button
          component={Link}
          to={`/calls?key=${key.id}`}
          size="compact-sm"
          variant="default"
          aria-label={`Calls of ${visible(key.name)}`}
        >
          Calls
        </Button>
        {key.scopes.some((scope) => scope !== 'call') && (
          <Button
            component={Link}
            to={`/audit?who=${key.id}`}
            size="compact-sm"
            variant="default"
            aria-label={`Changes by ${visible(key.name)}`}
          >
            Changes
          </Button>
        )}
        {!isOver(key) && onReplace && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => onReplace(key)}
            aria-label={`Replace ${visible(key.name)}`}
          >
            Replace
          </Button>
        )}
        {!isOver(key) && onRevoke && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => onRevoke(key)}
            aria-label={`Revoke ${visible(key.name)}`}
          >
            Revoke
          </Button>
        )}
      </Group>
    ),
  };
  return <Rows label="API keys" columns={[...columns, actions]} rows={keys} keyOf={({ id }) => id} />;
}

/** Texts below one another, in a column so wide that most fit on one line. */
function SlugList({ slugs }: { slugs: readonly string[] }) {
  return (
    <Box miw="6.5rem">
      {slugs.map((slug) => (
        <div key={slug}>{slug}</div>
      ))}
    </Box>
  );
}

function Status({ apiKey: { revoked_at, expires_at } }: { apiKey: ApiKey }) {
  if (revoked_at) {
    return (
      <Text size="sm" c="dimmed">
        revoked <Time at={revoked_at} />
      </Text>
    );
  }
  if (expires_at === undefined) return <Badge color="green">active</Badge>;
  const isPast = Date.parse(expires_at) <= Date.now();
  return (
    <Group gap={6}>
      <Badge color={isPast ? 'gray' : 'green'}>{isPast ? 'expired' : 'active'}</Badge>
      <Text size="xs" c="dimmed">
        {isPast ? '' : 'expires '}
        <Time at={expires_at} />
      </Text>
    </Group>
  );
}
