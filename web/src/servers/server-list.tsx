import { Anchor, Box, Group, Text } from '@mantine/core';
import { Link, useNavigate } from 'react-router';
import type { ServerRecord } from '../answers.ts';
import { AccessBadge } from '../ui/access-badge.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import { Time } from '../ui/time.tsx';
import { visible } from '../ui/visible.ts';
import { useActivity } from './server-queries.ts';
import { Sparkline } from './sparkline.tsx';

const columns: Column<ServerRecord>[] = [
  {
    label: 'Server',
    cell: (server) => (
      <Box maw={420}>
        <Anchor component={Link} to={`/servers/${server.slug}`} fw={600} c="var(--mantine-color-text)">
          {visible(server.name)}
        </Anchor>
        <Text size="xs" c="dimmed" className="th-mono">
          /mcp/{server.slug}
        </Text>
      </Box>
    ),
  },
  { label: 'Access', cell: (server) => <AccessBadge access={server.access} /> },
  { label: 'Tools', cell: (server) => server.tool_count, end: true },
  { label: 'Calls, 24 h', cell: (server) => <Calls slug={server.slug} /> },
  { label: 'Changed', cell: (server) => <Time at={server.updated_at} /> },
];

export function ServerList({ servers }: { servers: readonly ServerRecord[] }) {
  const navigate = useNavigate();
  return (
    <div className="th-card">
      <Rows
        label="Servers"
        columns={columns}
        rows={servers}
        keyOf={(server) => server.id}
        onOpen={(server) => navigate(`/servers/${server.slug}`)}
      />
    </div>
  );
}

const quiet = Array.from({ length: 24 }, () => 0);

function Calls({ slug }: { slug: string }) {
  const { data } = useActivity();
  const activity = data?.find((entry) => entry.slug === slug) ?? { slug, calls: 0, errors: 0, hourly: quiet };
  return (
    <Group gap="sm" wrap="nowrap">
      <Sparkline activity={activity} />
      <Box miw={48}>
        <Text size="sm">{activity.calls.toLocaleString('en')}</Text>
        {activity.errors > 0 && (
          <Text size="xs" c="var(--th-bad)">
            {activity.errors} failed
          </Text>
        )}
      </Box>
    </Group>
  );
}
