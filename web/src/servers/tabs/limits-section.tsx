import { Badge, Button, Group, NumberInput, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import type { Limit, LimitUse, ServerLimits, UpstreamState } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { isSame, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { useAnswer } from '../../use-answer.ts';
import { bounds } from '../declared.ts';
import { useShownServer } from '../server-page.tsx';

type Field = 'calls_per_second' | 'concurrent_calls' | 'calls_per_minute' | 'calls_per_day';
/** An empty text is the default. */
type Values = Record<Field, number | string>;
/** The limits to set, and the texts of the fields at that time. */
type Wanted = { values: Values; typed: Values };

const most: Record<Field, number> = {
  calls_per_second: bounds.calls.most,
  concurrent_calls: bounds.calls.most,
  calls_per_minute: bounds.quota.most,
  calls_per_day: bounds.quota.most,
};
const labels: Record<Field, string> = {
  calls_per_second: 'Calls a second',
  concurrent_calls: 'Calls at once',
  calls_per_minute: 'Calls a minute',
  calls_per_day: 'Calls a day',
};
const fields = Object.keys(labels) as Field[];
const count = new Intl.NumberFormat('en');

/** The limits of a server and their current use. */
export function LimitsSection() {
  const { slug } = useShownServer().server;
  const query = useAnswer(queryKeys.limits(slug), 'getServerLimits', { slug }, { refetchInterval: 5000 });
  return (
    <Section
      title="Limits"
      text="Too many at once wait for up to two seconds. What is refused never reaches the API and says when to try again. Minutes and days are those of UTC."
    >
      <Loaded query={query}>
        {(limits) => (
          <Stack gap="md">
            <LimitsForm limits={limits} />
            <PresentUse limits={limits} />
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

function LimitsForm({ limits }: { limits: ServerLimits }) {
  const canEdit = useCanEdit();
  const form = useForm<Values>({
    initialValues: forEachField((field) => limits[field]?.set ?? ''),
    validate: forEachField((field) => (value: number | string) => problemWith(value, most[field])),
  });
  const save = useAction({
    run: ({ values }: Wanted) => api('setServerLimits', { slug: limits.slug, ...bodyOf(values) }),
    done: (_, { values }) =>
      fields.every((field) => values[field] === '') ? 'The default limits count' : 'Saved the limits',
    refresh: [queryKeys.limits(limits.slug)],
    onDone: (_, { values, typed }) => {
      if (isSame(typed, form.getValues())) form.setValues(values);
      form.resetDirty(values);
    },
  });
  const wanted = (values: Values): Wanted => ({ values, typed: form.getValues() });
  const { problems, failure } = refusalOf(save, wanted(form.values));
  const errorOf = (field: Field) => {
    const found = problems.find((problem) => problem.path === field);
    return form.errors[field] ?? (found && sentence(found.message));
  };
  const isSet = fields.some((field) => limits[field]?.set !== undefined);
  return (
    <form onSubmit={form.onSubmit((values) => save.mutate(wanted(values)))} noValidate>
      <Stack gap="sm">
        {failure && <ProblemAlert error={failure} />}
        <TwoColumns maw={656}>
          {fields.map((field) => (
            <NumberInput
              key={field}
              label={labels[field]}
              description={describe(limits[field], limits.workspace[field])}
              placeholder={placeholderOf(limits[field])}
              allowDecimal={false}
              allowNegative={false}
              clampBehavior="none"
              hideControls
              thousandSeparator=","
              inputMode="numeric"
              readOnly={!canEdit}
              {...form.getInputProps(field)}
              error={errorOf(field)}
            />
          ))}
        </TwoColumns>
        {canEdit && (
          <Group gap="sm">
            <Button type="submit" variant="default" loading={save.isPending} disabled={!form.isDirty()}>
              Save limits
            </Button>
            {isSet && (
              <Button
                variant="subtle"
                disabled={save.isPending}
                onClick={() => save.mutate(wanted(forEachField(() => '')))}
              >
                Use the defaults
              </Button>
            )}
          </Group>
        )}
      </Stack>
    </form>
  );
}

function problemWith(value: number | string, upTo: number): string | null {
  const isAllowed = value === '' || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= upTo);
  return isAllowed ? null : `Allowed: a whole number from 1 to ${count.format(upTo)}, or nothing for the default.`;
}

function forEachField<Value>(make: (field: Field) => Value): Record<Field, Value> {
  return Object.fromEntries(fields.map((field) => [field, make(field)])) as Record<Field, Value>;
}

/** An absent quota means no quota. */
function placeholderOf(limit: Limit | undefined): string {
  if (!limit) return 'no limit';
  return limit.from === 'default' ? shown(limit) : 'Default';
}

const bodyOf = (values: Values) =>
  Object.fromEntries(fields.map((field) => [field, values[field] === '' ? null : values[field]]));

const shown = ({ limit }: Limit) => (limit === undefined ? 'no limit' : count.format(limit));

function describe(own: Limit | undefined, workspace: Limit | undefined): string {
  if (!own) return 'No quota is set.';
  if (own.from === 'workspace') return `${shown(own)} counts, the limit of the whole workspace.`;
  const source = own.from === 'default' ? 'The default' : 'Set here';
  return workspace?.limit === undefined ? `${source}.` : `${source}; ${shown(workspace)} for the whole workspace.`;
}

function PresentUse({ limits: { use, workspace, upstreams } }: { limits: ServerLimits }) {
  return (
    <Stack gap={6}>
      {use && <Text size="sm">Now: {inWords(use)}</Text>}
      {workspace.use && (
        <Text size="sm" c="dimmed">
          All servers of the workspace: {inWords(workspace.use)}
        </Text>
      )}
      {upstreams.map((upstream) => (
        <Upstream key={upstream.origin} upstream={upstream} />
      ))}
    </Stack>
  );
}

const inWords = ({ running, waiting, refused }: LimitUse) =>
  `${count.format(running)} running, ${count.format(waiting)} waiting, ${count.format(refused)} refused in the last minute.`;

const states = {
  closed: { color: 'green', text: 'Called normally' },
  open: { color: 'red', text: 'Fails, not called' },
  half_open: { color: 'yellow', text: 'About to be tried' },
} as const;

const secondsUntil = (at: string) => Math.max(1, Math.ceil((Date.parse(at) - Date.now()) / 1000));

function Upstream({ upstream: { origin, state, calls, failures, next_attempt_at } }: { upstream: UpstreamState }) {
  return (
    <Group gap="xs">
      <Text size="sm" className="th-mono" component="span">
        {origin}
      </Text>
      <Badge color={states[state].color}>{states[state].text}</Badge>
      {failures > 0 && (
        <Text size="sm" c="dimmed" component="span">
          {failures} of {calls} calls failed in the last half minute
        </Text>
      )}
      {state === 'open' && next_attempt_at && (
        <Text size="sm" c="dimmed" component="span">
          next attempt in {secondsUntil(next_attempt_at)} s
        </Text>
      )}
    </Group>
  );
}
