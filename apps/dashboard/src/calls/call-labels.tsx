import { Badge, Text } from '@mantine/core';
import type { Call } from '../api-types.ts';
import { toVisible } from '../ui/text/visible.ts';
import { outcomeLabels } from './call-filter.ts';

export const callerLabels: { [kind: string]: string } = {
  api_key: 'API key',
  oauth: 'Login (OAuth)',
  login: 'Login',
  caller_token: 'Caller token',
  try_out: 'Try-out',
  playground: 'Playground',
};

export function formatCaller(kind: string): string {
  return callerLabels[kind] ?? kind.replaceAll('_', ' ');
}

/** Returns the reason for a call's outcome, or undefined if it only repeats the outcome. */
export function getReason({ outcome, reason }: Call): string | undefined {
  return reason === undefined || reason === outcome.replaceAll('_', ' ') ? undefined : toVisible(reason);
}

export function OutcomeBadge({ call: { outcome, upstream_status } }: { call: Call }) {
  const failureColor = outcome === 'cancelled' || outcome === 'limited' ? 'yellow' : 'red';
  const text =
    outcome === 'upstream_status' && upstream_status ? `API returned ${upstream_status}` : outcomeLabels[outcome];
  return <Badge color={outcome === 'ok' ? 'green' : failureColor}>{text ?? outcome}</Badge>;
}

export function Outcome({ call }: { call: Call }) {
  return (
    <div>
      <OutcomeBadge call={call} />
      <Text size="xs" c="dimmed" lineClamp={2} maw={420}>
        {getReason(call)}
      </Text>
    </div>
  );
}
