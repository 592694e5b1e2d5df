import { Badge, Group, Text } from '@mantine/core';
import { formatImportChanges } from '@toolhost/server/operations/import-changes';
import { Link, useNavigate } from 'react-router';
import type { Activity, ServerRecord } from '../../api-types.ts';
import { type Column, Count, RowName, Rows } from '../../ui/rows.tsx';
import { AccessBadge } from '../../ui/text/access-badge.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { type Listing, useActivity } from '../server-queries.ts';
import { Tags } from './tags.tsx';

const createColumns = (activities: ReadonlyMap<string, Activity>): Column<ServerRecord>[] => [
  {
    label: 'Server',
    cell: (server) => (
      <RowName
        name={
          <>
            <TextLink to={`/servers/${server.slug}`} c="inherit">
              {toVisible(server.name)}
            </TextLink>{' '}
            <ImportBadge server={server} />
          </>
        }
      >
        <span className="th-mono">
          <span data-narrow="hidden">/mcp/</span>
          {server.slug}
        </span>{' '}
        <Tags server={server} />
      </RowName>
    ),
  },
  { label: 'Access', narrow: 'hidden', cell: (server) => <AccessBadge server={server} /> },
  { label: 'Tools', cell: (server) => server.tool_count, isEndAligned: true },
  { label: 'Calls, 24 h', cell: ({ slug }) => <Calls activity={activities.get(slug)} />, isEndAligned: true },
  { label: 'Failed, 24 h', cell: ({ slug }) => <Count value={activities.get(slug)?.errors} />, isEndAligned: true },
  { label: 'Changed', narrow: 'hidden', cell: (server) => <Time at={server.updated_at} /> },
];

/** Cursors of the pages that contained the servers. */
export type Cursors = readonly (string | undefined)[];

type Props = { servers: readonly ServerRecord[]; listing: Listing; cursors: Cursors };
export function ServerList({ servers, listing, cursors }: Props) {
  const navigate = useNavigate();
  const columns = createColumns(useActivity(listing, cursors));
  return (
    <Rows
      label="Servers"
      columns={columns}
      rows={servers}
      getKey={(server) => server.id}
      onOpen={(server) => navigate(`/servers/${server.slug}`)}
    />
  );
}

/** Badge for an API description that has changed or cannot be read, linked to the Import tab. */
function ImportBadge({ server: { slug, imported } }: { server: ServerRecord }) {
  const { changed, error, counts } = imported ?? {};
  if (error === undefined && !changed) return null;
  return (
    <Badge
      component={Link}
      to={`/servers/${slug}/settings/import`}
      color={error === undefined ? 'blue' : 'yellow'}
      title={error ?? (counts && formatImportChanges(counts))}
    >
      {error === undefined ? 'API changed' : 'API unreadable'}
    </Badge>
  );
}

const noActivity = { calls: 0, errors: 0, hourly: Array.from({ length: 24 }, () => 0) };

function Calls({ activity = noActivity }: { activity: Omit<Activity, 'slug'> | undefined }) {
  return (
    <Group gap="sm" wrap="nowrap" justify="flex-end">
      <Sparkline activity={activity} />
      <Text span inherit miw={40}>
        <Count value={activity.calls} />
      </Text>
    </Group>
  );
}

/** Calls of the last 24 hours, one bar per hour. */
function Sparkline({ activity: { calls, errors, hourly } }: { activity: Omit<Activity, 'slug'> }) {
  const maxCount = Math.max(1, ...hourly);
  return (
    <svg
      width={120}
      height={28}
      viewBox={`0 0 ${hourly.length} 1`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${calls} calls in the last 24 hours${errors > 0 ? `, ${errors} with errors` : ''}`}
    >
      {hourly.map((count, hour) => {
        const height = count === 0 ? 0.05 : Math.max(0.1, count / maxCount);
        const fill = count === 0 ? 'var(--th-line)' : 'var(--th-accent)';
        // biome-ignore lint/suspicious/noArrayIndexKey: the hour identifies the bar
        return <rect key={hour} x={hour + 0.15} y={1 - height} width={0.7} height={height} fill={fill} />;
      })}
    </svg>
  );
}
