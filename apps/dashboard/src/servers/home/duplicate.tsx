import { Autocomplete, Checkbox, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Input, Output } from '@toolhost/server/operations';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api } from '../../api.ts';
import type { ServerDetail } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { DialogForm } from '../../ui/actions/confirm.tsx';
import { getFieldError } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { SecretInput } from '../../ui/secret-input.tsx';
import { ProblemAlert, toSentence } from '../../ui/states/problem-alert.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { ChangeList } from '../change-list.tsx';

type Plan = Output<'planDuplicate'>;
type DuplicateInput = Pick<Input<'planDuplicate'>, 'to' | 'name' | 'base_url' | 'overwrite'>;
type Secrets = { readonly [name: string]: string };

/** Form that copies the server to another slug, base URL, and secrets, or updates a copy. */
export function DuplicateForm({ detail, onClose }: { detail: ServerDetail; onClose: () => void }) {
  const { server, copies } = detail;
  const navigate = useNavigate();
  const [input, setInput] = useState<DuplicateInput>({ to: copies[0]?.slug ?? '' });
  const [secrets, setSecrets] = useState<Secrets>({});
  const { plan, isStale, error } = usePlan(server.slug, server.version, input);
  const enteredSecrets = Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== ''));
  const isUpdate = plan !== undefined && plan.version > 0;
  const store = useAction({
    run: () =>
      api(
        'duplicateMcpServer',
        { slug: server.slug, ...input, secrets: enteredSecrets },
        isUpdate ? { version: plan.version } : {},
      ),
    toast: ({ server: copy }) => `${copy.name} is now at version ${copy.version}`,
    refresh: [queryKeys.servers],
    onSuccess: ({ server: copy }) => {
      onClose();
      void navigate(`/servers/${copy.slug}`);
    },
  });
  const problems = isStale ? [] : (plan?.problems ?? []);
  const hasChange = plan?.change !== 'same' || Object.keys(enteredSecrets).length > 0;
  const hasSecrets = plan?.missing.every(({ name, required }) => !required || enteredSecrets[name] !== undefined);
  const isReady = hasSecrets === true && hasChange && !isStale && problems.length === 0;
  return (
    <DialogForm
      action={isUpdate ? `Update ${input.to}` : 'Create copy'}
      isPending={store.isPending}
      isReady={isReady}
      error={store.error}
      onClose={onClose}
      onSubmit={() => isReady && store.mutate()}
    >
      <Autocomplete
        label="Copy slug"
        description="A new slug, or the slug of an existing copy to update."
        placeholder={`${server.slug}-production`}
        data={copies.map(({ slug }) => slug)}
        value={input.to}
        onChange={(to) => setInput({ to: to.trim() })}
        error={getProblemText(problems, 'to')}
        className="th-mono"
        autoComplete="off"
        data-autofocus
        required
      />
      {error && <ProblemAlert error={error} />}
      {plan && <CopyFields {...{ detail, plan, problems, input, secrets }} onInput={setInput} onSecrets={setSecrets} />}
    </DialogForm>
  );
}

const getProblemText = (problems: Plan['problems'], field: string) =>
  getFieldError({ problems, failure: undefined }, field);

const copyFieldLabels = { name: 'Copy name', base_url: 'Copy base URL' } as const;

const missingReasons = {
  no_value: 'Not set in the copy.',
  other_host: 'Set for a different host. Enter it again.',
} as const;

type FieldsProps = {
  detail: ServerDetail;
  plan: Plan;
  problems: Plan['problems'];
  input: DuplicateInput;
  onInput: (input: DuplicateInput) => void;
  secrets: Secrets;
  onSecrets: (secrets: Secrets) => void;
};

/** Settings specific to the copy, and its differences. */
function CopyFields({ detail: { server, copies }, plan, problems, input, onInput, secrets, onSecrets }: FieldsProps) {
  const isUnrelated = plan.version > 0 && input.to !== server.slug && !copies.some(({ slug }) => slug === input.to);
  const isNew = plan.change === 'created';
  return (
    <>
      {isUnrelated && (
        <Checkbox
          label={`Replace the configuration of ${toVisible(input.to)}, which is not a copy of this server`}
          checked={input.overwrite === true}
          onChange={(event) => onInput({ ...input, overwrite: event.currentTarget.checked })}
        />
      )}
      {(['name', 'base_url'] as const).map(
        (field) =>
          plan[field] !== undefined && (
            <TextInput
              key={field}
              label={copyFieldLabels[field]}
              value={input[field] ?? plan[field]}
              onChange={(event) => onInput({ ...input, [field]: event.currentTarget.value })}
              error={getProblemText(problems, field)}
              spellCheck={false}
            />
          ),
      )}
      {plan.missing.map(({ name, why, required }) => (
        <SecretInput
          key={name}
          label={name}
          description={missingReasons[why]}
          value={secrets[name] ?? ''}
          onChange={(event) => onSecrets({ ...secrets, [name]: event.currentTarget.value })}
          required={required}
        />
      ))}
      {problems
        .filter(({ path }) => path !== 'to' && !Object.hasOwn(copyFieldLabels, path))
        .map(({ path, message }) => (
          <Text key={path + message} c="var(--th-bad)">
            {toVisible(path)}: {toSentence(message)}
          </Text>
        ))}
      <Text fw={600}>{isNew ? 'Differences from this server' : `Changes to the copy at version ${plan.version}`}</Text>
      <ChangeList
        label="Differences"
        changes={plan.changes}
        labels={isNew ? { before: 'here', after: 'copy' } : { before: 'before', after: 'after' }}
      />
    </>
  );
}

/** Fetches the plan of the copy. `isStale` is true while the plan belongs to an older input. */
function usePlan(slug: string, version: number, input: DuplicateInput) {
  const [settled] = useDebouncedValue(input, 250);
  const shouldFetch = settled.to.length > 2;
  const { data, error, isFetching } = useQuery({
    queryKey: queryKeys.duplicate(slug, version, settled),
    queryFn: ({ signal }) => api('planDuplicate', { slug, ...settled }, { signal }),
    placeholderData: keepPreviousData,
    enabled: shouldFetch,
    gcTime: 0,
  });
  return { ...(shouldFetch && { plan: data, error }), isStale: settled !== input || isFetching };
}
