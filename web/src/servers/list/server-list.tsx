import { Anchor, Badge, Box, Group, Text } from '@mantine/core';
import { Link, useNavigate } from 'react-router';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { Activity, ServerRecord } from '../../answers.ts';
import { type Column, Rows } from '../../ui/rows.tsx';
import { AccessBadge } from '../../ui/text/access-badge.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { type Listing, useActivity } from '../server-queries.ts';
import { Tags } from './tag-editor.tsx';

const columnsWith = (activityOf: (slug: string) => Activity): Column<ServerRecord>[] => [
  {
    label: 'Server',
    cell: (server) => (
      <Box maw={420}>
        <Group gap={6}>
          <Anchor component={Link} to={`/servers/${server.slug}`} fw={600} c="var(--mantine-color-text)">
            {visible(server.name)}
          </Anchor>
          <ImportBadge server={server} />
        </Group>
        <Group gap={6}>
          <Text size="xs" c="dimmed" className="th-mono">
            /mcp/{server.slug}
          </Text>
          <Tags server={server} />
        </Group>
      </Box>
    ),
  },
  { label: 'Access', cell: (server) => <AccessBadge server={server} /> },
  { label: 'Tools', cell: (server) => server.tool_count, end: true },
  { label: 'Calls, 24 h', cell: (server) => <Calls activity={activityOf(server.slug)} /> },
  { label: 'Changed', cell: (server) => <Time at={server.updated_at} /> },
];

type Listed = {
  servers: readonly ServerRecord[];
  listing: Listing;
  /** From the pages in which the servers came. */
  cursors: readonly (string | undefined)[];
};

export function ServerList({ servers, listing, cursors }: Listed) {
  const navigate = useNavigate();
  const activities = useActivity(listing, cursors);
  const activityOf = (slug: string) => activities.get(slug) ?? { slug, calls: 0, errors: 0, hourly: quiet };
  const columns = columnsWith(activityOf);
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

/** Says that the description of a server has changed or cannot be read, and leads to its import. */
function ImportBadge({ server: { slug, imported } }: { server: ServerRecord }) {
  const { changed, error, counts } = imported ?? {};
  if (error === undefined && !changed) return null;
  return (
    <Badge
      component={Link}
      to={`/servers/${slug}/import`}
      color={error === undefined ? 'blue' : 'yellow'}
      size="sm"
      className="th-badge-link"
      title={error ?? (counts && changesText(counts))}
    >
      {error === undefined ? 'API changed' : 'API unreadable'}
    </Badge>
  );
}

const quiet = Array.from({ length: 24 }, () => 0);

function Calls({ activity }: { activity: Activity }) {
  return (
    <Group gap="sm" wrap="nowrap">
      <Sparkline activity={activity} />
      <Box miw={48}>
        <Text size="sm">{activity.calls.toLocaleString('en')}</Text>
        {activity.errors > 0 && (
          <Text size="xs" c="var(--th-bad)">
            {activity.errors.toLocaleString('en')} failed
          </Text>
        )}
      </Box>
    </Group>
  );
}

const width = 120;
const height = 28;

/** The calls of the last day, a bar an hour. */
function Sparkline({ activity }: { activity: Activity }) {
  const most = Math.max(1, ...activity.hourly);
  const step = width / activity.hourly.length;
  const errors = activity.errors > 0 ? `, ${activity.errors} with errors` : '';
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${activity.calls} calls in the last 24 hours${errors}`}
    >
      {activity.hourly.map((calls, hour) => {
        const bar = calls === 0 ? 1.5 : Math.max(3, (calls / most) * height);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: the hour is what a bar is
            key={hour}
            x={hour * step + 0.75}
            y={height - bar}
            width={step - 1.5}
            height={bar}
            rx={1}
            fill={calls === 0 ? 'var(--th-line)' : 'var(--th-accent)'}
          />
        );
      })}
    </svg>
  );
}
