import { Drawer, Text, UnstyledButton } from '@mantine/core';
import { IconHistory } from '@tabler/icons-react';
import { useState } from 'react';
import type { AuditEvent } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { PagedList } from '../ui/paged-list.tsx';
import { type Column, Dash, Rows } from '../ui/rows.tsx';
import { Empty } from '../ui/states/empty.tsx';
import { Facts } from '../ui/text/facts.tsx';
import { ClockTime, formatExactTime } from '../ui/text/time.tsx';
import { useUrlState } from '../ui/use-url-state.ts';
import { usePages } from '../use-operation-query.ts';
import { AuditFilters } from './audit-filters.tsx';
import { Actor, formatDetail, getFacts, Target } from './event-cells.tsx';
import { formatOperation } from './operation-text.ts';

const getColumns = (open: (event: AuditEvent) => void): Column<AuditEvent>[] => [
  { label: 'Time', narrow: 'end', cell: ({ at }) => <ClockTime at={at} /> },
  { label: 'Actor', cell: (event) => <Actor event={event} /> },
  {
    label: 'Action',
    narrow: 'title',
    cell: (event) => <UnstyledButton onClick={() => open(event)}>{formatOperation(event.operation)}</UnstyledButton>,
  },
  { label: 'Target', cell: (event) => <Target event={event} isLink={false} /> },
  {
    label: 'Details',
    narrow: 'hidden',
    cell: ({ detail }) => (
      <Text inherit c="dimmed" lineClamp={1}>
        {formatDetail(detail) || <Dash />}
      </Text>
    ),
  },
];

/** Drawer with all facts of an event. */
function EventDrawer({ event, onClose }: { event: AuditEvent | undefined; onClose: () => void }) {
  const title = event && formatOperation(event.operation);
  return (
    <Drawer opened={event !== undefined} onClose={onClose} position="right" size="lg" title={title}>
      {event && (
        <Facts
          facts={[
            ['Time', formatExactTime(event.at)],
            ['Actor', <Actor key="actor" event={event} />],
            ['Target', <Target key="target" event={event} />],
            ...getFacts(event.detail),
            ['Operation', event.operation],
            ['Request', event.request_id],
          ]}
        />
      )}
    </Drawer>
  );
}

/** Converts the filters in the URL to REST API parameters. Days start and end in the browser's time zone. */
function parseFilter(get: (name: string) => string | undefined) {
  const getMidnight = (day: string | undefined, addedDays = 0) => {
    const at = new Date(`${day}T00:00`);
    at.setDate(at.getDate() + addedDays);
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
  };
  return {
    actor_id: get('who'),
    operation: get('what'),
    target: get('of'),
    since: getMidnight(get('from')),
    until: getMidnight(get('to'), 1),
  };
}

export function AuditPage() {
  const { get, set, clear } = useUrlState();
  const [openEvent, setOpenEvent] = useState<AuditEvent>();
  const filter = parseFilter(get);
  const isNarrowed = Object.values(filter).some((value) => value !== undefined);
  const pages = usePages([...queryKeys.audit, filter], 'listAuditEvents', { ...filter, limit: 50 });
  const getEmptyText = (searchedTo: string | undefined) =>
    isNarrowed
      ? `No changes match the filters${searchedTo ? ` back to ${formatExactTime(searchedTo)}` : ''}.`
      : 'Changes to servers, secrets, keys, and members appear here.';
  return (
    <>
      <PageHeader title="Audit" guide="docs/operations/observability.md" />
      <AuditFilters get={get} set={set} onClear={isNarrowed ? clear : undefined} />
      <PagedList pages={pages} getRows={(page) => page.events} nextPageLabel="Show older changes">
        {(events, lastPage) =>
          events.length === 0 ? (
            <Empty
              icon={<IconHistory size={24} />}
              title={isNarrowed ? 'No matching changes' : 'No changes yet'}
              text={getEmptyText(lastPage?.searched_to)}
            />
          ) : (
            <Rows
              label="Changes"
              columns={getColumns(setOpenEvent)}
              rows={events}
              getKey={({ id }) => id}
              onOpen={setOpenEvent}
            />
          )
        }
      </PagedList>
      <EventDrawer event={openEvent} onClose={() => setOpenEvent(undefined)} />
    </>
  );
}
