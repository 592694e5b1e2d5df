import { Autocomplete, Button, Checkbox, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Input, Output } from '../../../../src/operations/index.ts';
import { ApiProblem, api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { visible } from '../../ui/text/visible.ts';
import { ChangeList } from '../change-list.tsx';
import { useShownServer } from '../server-page.tsx';

type Plan = Output<'planDuplicate'>;
type Given = Pick<Input<'planDuplicate'>, 'to' | 'name' | 'base_url' | 'overwrite'>;
type Secrets = { readonly [name: string]: string };

const whys = {
  no_value: 'Has no value at the copy.',
  other_host: 'Was set for another host; set it again.',
} as const;

/** Takes the server to another slug, base address and secrets, or brings a copy up to date. */
export function DuplicateDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { server } = useShownServer();
  return (
    <Modal opened={opened} onClose={onClose} title={`Duplicate ${visible(server.name)}`} size="lg">
      <DuplicateForm onClose={onClose} />
    </Modal>
  );
}

function DuplicateForm({ onClose }: { onClose: () => void }) {
  const { server, copies } = useShownServer();
  const navigate = useNavigate();
  const [given, setGiven] = useState<Given>({ to: copies[0]?.slug ?? '' });
  const [secrets, setSecrets] = useState<Secrets>({});
  const { plan, isBehind, error } = usePlan(server.slug, server.version, given);
  const typed = Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== ''));
  const store = useAction({
    run: () =>
      api(
        'duplicateMcpServer',
        { slug: server.slug, ...given, secrets: typed },
        plan && plan.version > 0 ? { version: plan.version } : {},
      ),
    done: ({ server: copy }) => `${copy.name} is at version ${copy.version}`,
    refresh: [queryKeys.servers],
    onDone: ({ server: copy }) => {
      onClose();
      void navigate(`/servers/${copy.slug}`);
    },
  });
  const problemAt = (path: string) => {
    const found = plan?.problems.find((problem) => problem.path === path);
    return found && !isBehind ? sentence(found.message) : undefined;
  };
  const isReady =
    plan !== undefined &&
    !isBehind &&
    plan.problems.length === 0 &&
    plan.missing.every(({ name, required }) => !required || typed[name] !== undefined) &&
    (plan.change !== 'same' || Object.keys(typed).length > 0);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) store.mutate();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <Autocomplete
          label="Slug of the copy"
          description="A new one, or that of a copy to bring up to date."
          placeholder={`${server.slug}-production`}
          data={copies.map(({ slug }) => slug)}
          value={given.to}
          onChange={(to) => setGiven({ to: to.trim() })}
          error={problemAt('to')}
          className="th-mono"
          autoComplete="off"
          data-autofocus
          withAsterisk
        />
        {error && <ProblemAlert error={error} />}
        {plan && (
          <CopyFields
            plan={plan}
            given={given}
            onGiven={setGiven}
            secrets={secrets}
            onSecrets={setSecrets}
            problemAt={problemAt}
          />
        )}
        {store.error && <ProblemAlert error={store.error} title="Nothing was duplicated" />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={store.isPending}>
            Cancel
          </Button>
          <Button type="submit" disabled={!isReady} loading={store.isPending}>
            {plan && plan.version > 0 ? `Update ${given.to}` : 'Create the copy'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

type FieldsProps = {
  plan: Plan;
  given: Given;
  onGiven: (given: Given) => void;
  secrets: Secrets;
  onSecrets: (secrets: Secrets) => void;
  problemAt: (path: string) => string | undefined;
};

const ownFields: readonly string[] = ['to', 'name', 'base_url'];

/** What a copy has of its own, and what differs. */
function CopyFields({ plan, given, onGiven, secrets, onSecrets, problemAt }: FieldsProps) {
  const { server, copies } = useShownServer();
  const isOther = plan.version > 0 && given.to !== server.slug && !copies.some(({ slug }) => slug === given.to);
  const others = plan.problems.filter(({ path }) => !ownFields.includes(path));
  return (
    <>
      {isOther && (
        <Checkbox
          label={`Replace the configuration of ${visible(given.to)}, which was not made from this server`}
          checked={given.overwrite === true}
          onChange={(event) => onGiven({ ...given, overwrite: event.currentTarget.checked })}
        />
      )}
      <TextInput
        label="Name of the copy"
        value={given.name ?? plan.name}
        onChange={(event) => onGiven({ ...given, name: event.currentTarget.value })}
        error={problemAt('name')}
        autoComplete="off"
      />
      {plan.base_url !== undefined && (
        <TextInput
          label="Base address of the copy"
          value={given.base_url ?? plan.base_url}
          onChange={(event) => onGiven({ ...given, base_url: event.currentTarget.value })}
          error={problemAt('base_url')}
          className="th-mono"
          autoComplete="off"
          spellCheck={false}
        />
      )}
      {plan.missing.map(({ name, why, required }) => (
        <SecretInput
          key={name}
          label={name}
          description={whys[why]}
          value={secrets[name] ?? ''}
          onChange={(event) => onSecrets({ ...secrets, [name]: event.currentTarget.value })}
          withAsterisk={required}
          autoComplete="new-password"
        />
      ))}
      {others.map(({ path, message }) => (
        <Text key={path + message} size="sm" c="error">
          {visible(path)}: {sentence(message)}
        </Text>
      ))}
      <Differences plan={plan} />
    </>
  );
}

/** What the copy would be. `isBehind` while the plan is for an older input. */
function usePlan(slug: string, version: number, given: Given) {
  const [settled] = useDebouncedValue(given, 250);
  const isAsked = settled.to.length > 2;
  const { data, error, isFetching } = useQuery({
    queryKey: queryKeys.duplicate(slug, version, settled),
    queryFn: ({ signal }) => api('planDuplicate', { slug, ...settled }, { signal }),
    placeholderData: keepPreviousData,
    enabled: isAsked,
    gcTime: 0,
  });
  return {
    plan: isAsked ? data : undefined,
    error: isAsked && error instanceof ApiProblem ? error : undefined,
    isBehind: settled !== given || isFetching,
  };
}

function Differences({ plan: { change, version, changes } }: { plan: Plan }) {
  const isNew = change === 'created';
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600}>
        {isNew ? 'What differs from this server' : `What changes at the copy, which is at version ${version}`}
      </Text>
      <ChangeList
        label="What differs"
        changes={changes}
        signs={isNew ? { before: 'here', after: 'copy' } : { before: 'before', after: 'after' }}
      />
    </Stack>
  );
}
