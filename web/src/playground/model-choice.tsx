import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type ModelKind, modelUrls } from '../../../src/domain/model.ts';
import type { StoredModel } from '../answers.ts';
import { api } from '../api.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { slugFrom } from '../servers/config.ts';
import { refusalOf } from '../ui/actions/refusal.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { Folded } from '../ui/folded.tsx';
import { SecretInput } from '../ui/secret-input.tsx';
import { ProblemAlert, sentence } from '../ui/states/problem-alert.tsx';
import { visible } from '../ui/text/visible.ts';
import type { Asked } from './conversation.ts';

/** Model settings as entered. They are kept in this tab, including the key, until the tab is closed. */
type Typed = {
  /** Name of the selected saved model; empty for a custom model, absent if nothing was selected. */
  saved?: string;
  kind: ModelKind;
  url: string;
  model: string;
  key: string;
};

const storedAs = 'toolhost-playground-model';
const nothing: Typed = { kind: 'anthropic', url: '', model: '', key: '' };

const kinds: { value: ModelKind; label: string; example: string }[] = [
  { value: 'anthropic', label: 'Anthropic', example: 'claude-…' },
  { value: 'openai', label: 'OpenAI-compatible', example: 'qwen3' },
  { value: 'gemini', label: 'Gemini', example: 'gemini-…' },
];

export function useModel() {
  const [typed, setTyped] = useState<Typed>(() => {
    const kept = sessionStorage.getItem(storedAs);
    return kept === null ? nothing : { ...nothing, ...(JSON.parse(kept) as Partial<Typed>) };
  });
  const type = (change: Partial<Typed>) => {
    const next = { ...typed, ...change };
    sessionStorage.setItem(storedAs, JSON.stringify(next));
    setTyped(next);
  };
  const { data: models = [] } = useQuery({
    queryKey: queryKeys.models,
    queryFn: async ({ signal }) => (await api('listModels', {}, { signal })).models,
  });
  const { saved = models[0]?.name, kind, url, model, key } = typed;
  const stored = models.find(({ name }) => name === saved);
  const own = { kind, model, url: url || undefined, key: key || undefined };
  const asked: Asked['model'] = stored ? { saved: stored.name } : own;
  return { typed, type, models, stored, asked, name: stored?.name ?? model };
}

type OwnProps = Pick<ReturnType<typeof useModel>, 'typed' | 'type'>;

/** Choice between the workspace's saved models and a custom one. */
export function ModelChoice({ model }: { model: ReturnType<typeof useModel> }) {
  const { typed, type, models, stored } = model;
  return (
    <Stack gap="sm">
      {models.length > 0 && (
        <Select
          label="Model"
          data={[
            ...models.map((one) => ({ value: one.name, label: visible(`${one.name} (${one.model})`) })),
            { value: '', label: 'Custom model' },
          ]}
          value={stored?.name ?? ''}
          onChange={(saved) => type({ saved: saved ?? '' })}
          allowDeselect={false}
        />
      )}
      {stored ? (
        <StoredNote stored={stored} onDeleted={() => type({ saved: '' })} />
      ) : (
        <OwnModel typed={typed} type={type} />
      )}
    </Stack>
  );
}

function StoredNote({ stored, onDeleted }: { stored: StoredModel; onDeleted: () => void }) {
  const canEdit = useCanEdit();
  const remove = useAction({
    run: () => api('deleteModel', { name: stored.name }),
    done: () => `Deleted ${stored.name}`,
    refresh: [queryKeys.models],
    onDone: onDeleted,
    toastFailure: true,
  });
  return (
    <Group justify="space-between" gap="xs">
      <Text size="sm" c="dimmed">
        At {visible(new URL(stored.url).host)}
        {stored.has_key ? ', with a stored key' : ', without a key'}.
      </Text>
      {canEdit && (
        <Button
          variant="subtle"
          color="red.8"
          size="compact-sm"
          loading={remove.isPending}
          onClick={() => remove.mutate()}
        >
          Delete
        </Button>
      )}
    </Group>
  );
}

function OwnModel({ typed, type }: OwnProps) {
  const canEdit = useCanEdit();
  const { kind, url, model, key } = typed;
  return (
    <>
      <Select
        label="API"
        description="Ollama, vLLM, and many others are OpenAI-compatible."
        data={kinds}
        value={kind}
        onChange={(next) => next && type({ kind: next as ModelKind })}
        allowDeselect={false}
      />
      <TextInput
        label="Model name"
        placeholder={kinds.find(({ value }) => value === kind)?.example ?? ''}
        value={model}
        onChange={(event) => type({ model: event.currentTarget.value.trim() })}
        className="th-mono"
        required
        autoComplete="off"
      />
      <TextInput
        label="Base URL"
        description={kind === 'openai' ? 'Local Ollama: http://127.0.0.1:11434/v1' : undefined}
        placeholder={modelUrls[kind]}
        value={url}
        onChange={(event) => type({ url: event.currentTarget.value.trim() })}
        className="th-mono"
        autoComplete="off"
      />
      <SecretInput
        label="Key"
        description="Kept in this tab until you close it, and sent with each question. The service does not store it."
        value={key}
        onChange={(event) => type({ key: event.currentTarget.value.trim() })}
        autoComplete="off"
      />
      {canEdit && model !== '' && <StoreModel typed={typed} onStored={(saved) => type({ saved, key: '' })} />}
    </>
  );
}

/** Saves the model for everyone in the workspace. */
function StoreModel({ typed, onStored }: { typed: Typed; onStored: (name: string) => void }) {
  const { kind, url, model, key } = typed;
  const [name, setName] = useState('');
  const wanted = name || slugFrom(model).slice(0, 40);
  const input = { name: wanted, kind, model, url: url || undefined, key: key || undefined };
  const store = useAction({
    run: (given: typeof input) => api('saveModel', given),
    done: () => `Saved ${wanted} for the workspace`,
    refresh: [queryKeys.models],
    onDone: (_, given) => onStored(given.name),
  });
  const { problems, failure } = refusalOf(store, input);
  const ofName = problems.find(({ path }) => path === 'name');
  const other = problems.find(({ path }) => path !== 'name');
  return (
    <Folded label="Save for workspace">
      <Text size="sm" c="dimmed">
        Everyone in the workspace who can call tools can then use it. The key is encrypted and never shown again.
      </Text>
      <TextInput
        label="Save as"
        value={wanted}
        onChange={(event) => setName(event.currentTarget.value)}
        error={ofName && sentence(ofName.message)}
      />
      {(failure || other) && <ProblemAlert error={failure ?? new Error(`${other?.path}: ${other?.message}`)} />}
      <Button variant="default" loading={store.isPending} onClick={() => store.mutate(input)}>
        Save model
      </Button>
    </Folded>
  );
}
