import { Drawer, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, orIfNotFound } from '../api.ts';
import type { Call, CallDetail } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { Loaded } from '../ui/states/loaded.tsx';
import { Facts } from '../ui/text/facts.tsx';
import { PersonName } from '../ui/text/person-name.tsx';
import { formatSize } from '../ui/text/size-text.ts';
import { TextLink } from '../ui/text/text-link.tsx';
import { formatExactTime } from '../ui/text/time.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { formatCaller, getReason, OutcomeBadge } from './call-labels.tsx';
import { CaptureView } from './capture-view.tsx';

type Props = { id: string | undefined; listedCall: Call | undefined; onClose: () => void };

export function CallDrawer({ id, listedCall, onClose }: Props) {
  const query = useQuery({
    queryKey: queryKeys.call(id ?? ''),
    queryFn: ({ signal }) => {
      const response = api('getCall', { id: id ?? '' }, { signal });
      return listedCall ? orIfNotFound<CallDetail>(response, { call: listedCall }) : response;
    },
    enabled: id !== undefined,
    staleTime: 60_000,
    ...(listedCall && { placeholderData: { call: listedCall } }),
  });
  const title = (
    <Text inherit ff="monospace">
      {query.data ? toVisible(query.data.call.tool) : 'Call'}
    </Text>
  );
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

function CallFacts({ detail: { call, caller_name } }: { detail: CallDetail }) {
  const { upstream_host: host, upstream_status: status, upstream_ms: upstreamMs, estimated_tokens: tokens } = call;
  const requestText = call.upstream_requests === undefined ? '' : `, ${call.upstream_requests} requests`;
  const facts: { [name: string]: ReactNode } = {
    Outcome: <OutcomeBadge call={call} />,
    Reason: getReason(call),
    Server: (
      <TextLink to={`/servers/${call.server}`} inherit className="th-mono">
        {toVisible(call.server)}
      </TextLink>
    ),
    View: call.view && toVisible(call.view),
    Model: call.model && formatModel(call),
    Time: formatExactTime(call.at),
    Duration: `${call.duration_ms} ms${upstreamMs === undefined ? '' : `, ${upstreamMs} ms of it at the API`}`,
    API: host ? `${toVisible(host)}${status ? `, ${status}` : ''}${requestText}` : 'no request sent',
    Caller: <Caller call={call} name={caller_name} />,
    Size: `${formatSize(call.bytes_in)} in, ${formatSize(call.bytes_out)} out${tokens === undefined ? '' : `, about ${tokens} tokens`}`,
    Request: <span className="th-mono">{call.request_id}</span>,
  };
  return <Facts facts={Object.entries(facts)} />;
}

function formatModel({ model = '', input_tokens: input, output_tokens: output }: Call): string {
  const tokens = input === undefined && output === undefined ? '' : `, ${input ?? '?'} tokens in, ${output ?? '?'} out`;
  return toVisible(model) + tokens;
}

function Caller({ call: { caller_kind, key_id }, name }: { call: Call; name: string | undefined }) {
  return (
    <>
      {formatCaller(caller_kind)}
      {(caller_kind === 'try_out' || caller_kind === 'playground') && ' by'}{' '}
      {key_id && <PersonName id={key_id} name={name} />}
    </>
  );
}
