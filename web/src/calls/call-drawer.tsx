import { Anchor, Drawer, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Call, CallDetail } from '../answers.ts';
import { ApiProblem, api } from '../api.ts';
import { queryKeys } from '../query-keys.ts';
import { Loaded } from '../ui/states/loaded.tsx';
import { PersonName } from '../ui/text/person-name.tsx';
import { sizeText } from '../ui/text/size-text.ts';
import { exactTime } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { callerText } from './caller-text.ts';
import { CaptureView } from './capture-view.tsx';
import { OutcomeBadge } from './outcome-badge.tsx';

type Props = { id: string | undefined; known: Call | undefined; onClose: () => void };

/** Everything about one call. */
export function CallDrawer({ id, known, onClose }: Props) {
  const query = useQuery({
    queryKey: queryKeys.call(id ?? ''),
    queryFn: async ({ signal }) => {
      try {
        return await api('getCall', { id: id ?? '' }, { signal });
      } catch (error) {
        if (known && error instanceof ApiProblem && error.status === 404) return { call: known };
        throw error;
      }
    },
    enabled: id !== undefined,
    staleTime: 60_000,
    ...(known && { placeholderData: { call: known } }),
  });
  const title = query.data ? visible(query.data.call.tool) : 'Call';
  return (
    <Drawer opened={id !== undefined} onClose={onClose} position="right" size="lg" title={title}>
      <Loaded query={query}>
        {(detail) => (
          <Stack gap="lg">
            <CallFacts detail={detail} />
            <CaptureView call={detail.call} capture={detail.capture} />
          </Stack>
        )}
      </Loaded>
    </Drawer>
  );
}

function factsOf({ call, caller_name }: CallDetail): [string, ReactNode][] {
  const upstream =
    call.upstream_host && `${visible(call.upstream_host)}${call.upstream_status ? `, ${call.upstream_status}` : ''}`;
  const waiting = call.upstream_ms === undefined ? '' : `, of it ${call.upstream_ms} ms at the API`;
  const tokens = call.estimated_tokens === undefined ? '' : `, about ${call.estimated_tokens} tokens`;
  return [
    ['Outcome', <OutcomeBadge key="outcome" call={call} />],
    ...(call.reason === undefined ? [] : [['Reason', visible(call.reason)] satisfies [string, ReactNode]]),
    [
      'Server',
      <Anchor key="server" component={Link} to={`/servers/${call.server}`} size="sm">
        {visible(call.server)}
      </Anchor>,
    ],
    ...(call.view === undefined ? [] : [['View', visible(call.view)] satisfies [string, ReactNode]]),
    ['Time', exactTime(call.at)],
    ['Took', `${call.duration_ms} ms${waiting}`],
    ['API', upstream ?? 'nothing was sent'],
    ['Caller', <Caller key="caller" call={call} name={caller_name} />],
    ['Size', `${sizeText(call.bytes_in)} in, ${sizeText(call.bytes_out)} out${tokens}`],
    [
      'Request',
      <span key="request" className="th-mono">
        {call.request_id}
      </span>,
    ],
  ];
}

function Caller({ call: { caller_kind, key_id }, name }: { call: Call; name: string | undefined }) {
  return (
    <>
      {callerText(caller_kind)}
      {caller_kind === 'try_out' && ' by'} {key_id && <PersonName id={key_id} name={name} />}
    </>
  );
}

function CallFacts({ detail }: { detail: CallDetail }) {
  return (
    <dl className="th-facts">
      {factsOf(detail).map(([name, value]) => (
        <Group key={name} component="div" gap="sm" wrap="nowrap" align="baseline">
          <Text component="dt" size="sm" c="dimmed" w={80} flex="none">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0}>
            {value}
          </Text>
        </Group>
      ))}
    </dl>
  );
}
