import { Badge, Text } from '@mantine/core';
import { type FailureGroup, getFailureGroup } from '@toolhost/errors/errors';
import type { Call } from '../api-types.ts';
import { accessKinds } from '../ui/text/access-badge.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { outcomeLabels } from './call-filter.ts';

export const callerLabels: { [kind: string]: string } = {
  api_key: accessKinds.api_key.name,
  oauth: accessKinds.oauth.name,
  login: accessKinds.login.name,
  caller_token: accessKinds.caller_token.name,
  try_out: 'Try it',
  playground: 'Playground',
};

export function formatCaller(kind: string): string {
  return callerLabels[kind] ?? kind.replaceAll('_', ' ');
}

/** Returns the reason for a call's outcome, or undefined if it only repeats the outcome. */
export function getReason({ outcome, reason }: Call): string | undefined {
  if (reason === undefined || reason === outcome.replaceAll('_', ' ')) return undefined;
  // The name of an argument or a host at the start stays as it is.
  return toVisible(reason).replace(/^[a-z]+(?= )/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
}

/** Groups of failures and their names, most urgent first. */
export const failureGroups: { [group in FailureGroup]: string } = {
  setup: 'Setup: you have to act',
  api: 'API failed',
  agent: 'Agent’s mistake',
};

/** Outcome of a call. Only failures of the API and of the setup are red. */
export function OutcomeBadge({ call: { outcome, upstream_status } }: { call: Call }) {
  const group = getFailureGroup(outcome, upstream_status);
  const isResponse = outcome === 'upstream_status' && upstream_status !== undefined;
  const text = isResponse ? `API returned ${upstream_status}` : (outcomeLabels[outcome] ?? outcome);
  if (group === undefined) return text;
  if (group !== 'agent') return <Badge color="red">{text}</Badge>;
  return <Badge leftSection={<span className="th-dot" />}>{text}</Badge>;
}

/** Matches a reason that only names the status of a response. */
const statusOnly = /^HTTP [^:]*$/;

export function Outcome({ call }: { call: Call }) {
  const reason = getReason(call);
  return (
    <div>
      <OutcomeBadge call={call} />
      {reason !== undefined && !(call.outcome === 'upstream_status' && statusOnly.test(reason)) && (
        <Text className="th-second-line" lineClamp={1} maw={420} title={reason}>
          {reason}
        </Text>
      )}
    </div>
  );
}
