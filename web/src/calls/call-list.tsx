import { Text, UnstyledButton } from '@mantine/core';
import type { Call } from '../answers.ts';
import { type Column, Rows } from '../ui/rows.tsx';
import { ClockTime } from '../ui/text/time.tsx';
import { visible } from '../ui/text/visible.ts';
import { callerText } from './caller-text.ts';
import { OutcomeBadge } from './outcome-badge.tsx';

type Props = { calls: readonly Call[]; isOfServer: boolean; onOpen: (call: Call) => void };

export function CallList({ calls, isOfServer, onOpen }: Props) {
  const placeOf = ({ server, view }: Call) =>
    isOfServer ? view && `view ${view}` : view === undefined ? server : `${server}/${view}`;
  const columns: Column<Call>[] = [
    {
      label: 'Tool',
      cell: (call) => (
        <UnstyledButton
          onClick={(event) => {
            event.stopPropagation();
            onOpen(call);
          }}
        >
          <Text className="th-mono" fw={600}>
            {visible(call.tool)}
          </Text>
          <Text size="xs" c="dimmed">
            {visible(placeOf(call) ?? '')}
          </Text>
        </UnstyledButton>
      ),
    },
    { label: 'Time', cell: ({ at }) => <ClockTime at={at} /> },
    {
      label: 'Outcome',
      cell: (call) => (
        <>
          <OutcomeBadge call={call} />
          {call.reason !== undefined && (
            <Text size="xs" c="dimmed" lineClamp={2} maw={360}>
              {visible(call.reason)}
            </Text>
          )}
        </>
      ),
    },
    { label: 'Caller', cell: (call) => callerText(call.caller_kind) },
    { label: 'Took', end: true, cell: ({ duration_ms }) => `${duration_ms.toLocaleString('en')} ms` },
  ];
  return <Rows label="Calls" columns={columns} rows={calls} keyOf={({ id }) => id} onOpen={onOpen} />;
}
