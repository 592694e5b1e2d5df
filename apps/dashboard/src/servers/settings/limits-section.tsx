import { Badge, Button, Group, NumberInput, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api.ts';
import type { Limit, LimitUsage, ServerLimits, UpstreamState } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFieldError, getFormErrors, isEqual } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Form } from '../../ui/form.tsx';
import { Section } from '../../ui/section.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { useOperationQuery } from '../../use-operation-query.ts';
import { useCurrentServer } from '../server-page.tsx';

const labels = {
  calls_per_second: 'Calls per second',
  concurrent_calls: 'Concurrent calls',
  calls_per_minute: 'Calls per minute',
  calls_per_day: 'Calls per day',
};
type Field = keyof typeof labels;
const fields = Object.keys(labels) as Field[];

/** Inputs of the form. An empty string means the default. */
type Values = Record<Field, number | string>;
const mapFields = (getValue: (field: Field) => number | string) =>
  Object.fromEntries(fields.map((field) => [field, getValue(field)])) as Values;

export function LimitsSection() {
  const { slug } = useCurrentServer().server;
  const query = useOperationQuery(queryKeys.limits(slug), 'getServerLimits', { slug }, { refetchInterval: 5000 });
  return (
    <Section
      title="Limits"
      text="Concurrent calls over the limit are queued for up to 2 seconds. Rejected calls never reach the API, and the error says when to retry. Minutes and days are in UTC."
    >
      <Loaded query={query}>
        {(limits) => (
          <Stack gap="md">
            <ViewerNote>Only editors and owners can change limits.</ViewerNote>
            <LimitsForm limits={limits} />
            <CurrentUse limits={limits} />
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

function LimitsForm({ limits }: { limits: ServerLimits }) {
  const canEdit = useCanEdit();
  const [edits, setEdits] = useState<Partial<Values>>({});
  const stored = mapFields((field) => limits[field]?.set ?? '');
  const values = { ...stored, ...edits };
  const save = useAction({
    run: (input: Values) => {
      const entries = fields.map((field) => [field, input[field] === '' ? null : input[field]]);
      return api('setServerLimits', { slug: limits.slug, ...Object.fromEntries(entries) });
    },
    toast: (_, input) =>
      fields.every((field) => input[field] === '') ? 'Restored the default limits' : 'Saved the limits',
    refresh: [queryKeys.limits(limits.slug)],
  });
  const formErrors = getFormErrors(save, values);
  const clear = () => {
    const emptyValues = mapFields(() => '');
    setEdits(emptyValues);
    save.mutate(emptyValues);
  };
  return (
    <Stack component={Form} gap="sm" onSubmit={() => save.mutate(values)}>
      {formErrors.failure && <ProblemAlert error={formErrors.failure} />}
      <TwoColumns>
        {fields.map((field) => (
          <NumberInput
            key={field}
            label={labels[field]}
            description={describeLimit(limits[field], limits.workspace[field])}
            placeholder={getPlaceholder(limits[field])}
            clampBehavior="none"
            hideControls
            thousandSeparator=","
            inputMode="numeric"
            readOnly={!canEdit}
            value={values[field]}
            onChange={(value) => setEdits({ ...edits, [field]: value })}
            error={getFieldError(formErrors, field)}
          />
        ))}
      </TwoColumns>
      {canEdit && (
        <Group gap="sm">
          <Button type="submit" variant="default" loading={save.isPending} disabled={isEqual(values, stored)}>
            Save limits
          </Button>
          {fields.some((field) => stored[field] !== '') && (
            <Button variant="subtle" disabled={save.isPending} onClick={clear}>
              Use defaults
            </Button>
          )}
        </Group>
      )}
    </Stack>
  );
}

/** Returns the placeholder of a limit. An absent limit means no quota. */
function getPlaceholder(limit: Limit | undefined): string {
  if (!limit) return 'no limit';
  return limit.from === 'default' ? formatLimit(limit) : 'Default';
}

const formatLimit = ({ limit }: Limit) => (limit === undefined ? 'no limit' : limit.toLocaleString('en'));

function describeLimit(serverLimit: Limit | undefined, workspace: Limit | undefined): string {
  if (!serverLimit) return '';
  if (serverLimit.from === 'workspace') return `The workspace limit of ${formatLimit(serverLimit)} applies.`;
  const source = serverLimit.from === 'default' ? 'Default' : 'Set here';
  return workspace?.limit === undefined ? `${source}.` : `${source}. Workspace limit: ${formatLimit(workspace)}.`;
}

function CurrentUse({ limits: { use, workspace, upstreams } }: { limits: ServerLimits }) {
  return (
    <Stack gap={6}>
      {use && <Text>Current use: {formatUse(use)}</Text>}
      {workspace.use && <Text c="dimmed">All servers in the workspace: {formatUse(workspace.use)}</Text>}
      {upstreams.map((upstream) => (
        <Upstream key={upstream.origin} upstream={upstream} />
      ))}
    </Stack>
  );
}

const formatUse = ({ running, waiting, refused }: LimitUsage) =>
  `${running.toLocaleString('en')} running, ${waiting.toLocaleString('en')} queued, ${refused.toLocaleString('en')} rejected in the last minute.`;

const states = {
  closed: { color: 'green', children: 'Healthy' },
  open: { color: 'red', children: 'Calls paused' },
  half_open: { color: 'yellow', children: 'Recovering' },
} as const;

function Upstream({ upstream: { origin, state, calls, failures, next_attempt_at } }: { upstream: UpstreamState }) {
  const waitSeconds = next_attempt_at ? Math.max(1, Math.ceil((Date.parse(next_attempt_at) - Date.now()) / 1000)) : 0;
  const remarks = [
    ...(failures > 0 ? [`${failures} of ${calls} calls failed in the last 30 seconds`] : []),
    ...(state === 'open' && waitSeconds > 0 ? [`next attempt in ${waitSeconds} s`] : []),
  ];
  return (
    <Group gap="xs">
      <Text className="th-mono" component="span">
        {origin}
      </Text>
      <Badge {...states[state]} />
      <Text c="dimmed" component="span">
        {remarks.join(', ')}
      </Text>
    </Group>
  );
}
