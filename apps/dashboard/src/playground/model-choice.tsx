import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { defaultModelUrls, type ModelKind } from '@toolhost/server/model';
import { useState } from 'react';
import { api } from '../api.ts';
import type { StoredModel } from '../api-types.ts';
import { useCanEdit } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { toSlug } from '../servers/config.ts';
import { getFieldError, getFormErrors } from '../ui/actions/form-errors.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { SecretInput } from '../ui/secret-input.tsx';
import { FormErrorAlert } from '../ui/states/form-error-alert.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';
import type { ModelRequest } from './conversation.ts';

/** Model settings as entered. They stay in this tab, including the key, until the tab is closed. */
type ModelSettings = {
  /** Name of the selected saved model; empty for a custom model, absent before the first selection. */
  saved?: string;
  kind: ModelKind;
  url: string;
  model: string;
  key: string;
};

const storageKey = 'toolhost-playground-model';
const emptySettings: ModelSettings = { kind: 'anthropic', url: '', model: '', key: '' };

const kinds: { value: ModelKind; label: string; example: string }[] = [
  { value: 'anthropic', label: 'Anthropic', example: 'claude-…' },
  { value: 'openai', label: 'OpenAI-compatible', example: 'qwen3' },
  { value: 'gemini', label: 'Gemini', example: 'gemini-…' },
];

export function useModel() {
  const [settings, setSettings] = useState<ModelSettings>(() => {
    const storedText = sessionStorage.getItem(storageKey);
    return storedText === null
      ? emptySettings
      : { ...emptySettings, ...(JSON.parse(storedText) as Partial<ModelSettings>) };
  });
  const changeSettings = (change: Partial<ModelSettings>) => {
    const next = { ...settings, ...change };
    sessionStorage.setItem(storageKey, JSON.stringify(next));
    setSettings(next);
  };
  const { models = [] } = useOperationQuery(queryKeys.models, 'listModels', {}).data ?? {};
  const { saved = models[0]?.name, kind, url, model, key } = settings;
  const stored = models.find(({ name }) => name === saved);
  const customModel = { kind, model, url: url || undefined, key: key || undefined };
  const request: ModelRequest['model'] = stored ? { saved: stored.name } : customModel;
  return { settings, changeSettings, models, stored, request, name: stored?.name ?? model };
}

type CustomModelProps = Pick<ReturnType<typeof useModel>, 'settings' | 'changeSettings'>;

/** Choice between the workspace's saved models and a custom one. */
export function ModelChoice({ model }: { model: ReturnType<typeof useModel> }) {
  const { settings, changeSettings, models, stored } = model;
  return (
    <Stack gap="sm">
      {models.length > 0 && (
        <Select
          label="Model"
          data={[
            ...models.map((saved) => ({ value: saved.name, label: toVisible(`${saved.name} (${saved.model})`) })),
            { value: '', label: 'Custom model' },
          ]}
          value={stored?.name ?? ''}
          onChange={(saved) => changeSettings({ saved: saved ?? '' })}
        />
      )}
      {stored ? (
        <SavedModelNote stored={stored} onDeleted={() => changeSettings({ saved: '' })} />
      ) : (
        <CustomModel settings={settings} changeSettings={changeSettings} />
      )}
    </Stack>
  );
}

function SavedModelNote({ stored, onDeleted }: { stored: StoredModel; onDeleted: () => void }) {
  const canEdit = useCanEdit();
  const remove = useAction({
    run: () => api('deleteModel', { name: stored.name }),
    toast: () => `Deleted ${stored.name}`,
    refresh: [queryKeys.models],
    onSuccess: onDeleted,
    toastFailure: true,
  });
  return (
    <Group justify="space-between" gap="xs">
      <Text c="dimmed">
        At {toVisible(new URL(stored.url).host)}
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

function CustomModel({ settings, changeSettings }: CustomModelProps) {
  const canEdit = useCanEdit();
  const { kind, url, model, key } = settings;
  return (
    <>
      <Select
        label="API"
        description="Ollama, vLLM, and many others are OpenAI-compatible."
        data={kinds}
        value={kind}
        onChange={(next) => next && changeSettings({ kind: next as ModelKind })}
      />
      <TextInput
        label="Model name"
        placeholder={kinds.find(({ value }) => value === kind)?.example ?? ''}
        value={model}
        onChange={(event) => changeSettings({ model: event.currentTarget.value.trim() })}
        className="th-mono"
        required
      />
      <TextInput
        label="Base URL"
        description={kind === 'openai' ? 'Local Ollama: http://127.0.0.1:11434/v1' : undefined}
        placeholder={defaultModelUrls[kind]}
        value={url}
        onChange={(event) => changeSettings({ url: event.currentTarget.value.trim() })}
        className="th-mono"
      />
      <SecretInput
        label="Key"
        description="Kept in this tab until you close it, and sent with each question. The service does not store it."
        value={key}
        onChange={(event) => changeSettings({ key: event.currentTarget.value.trim() })}
      />
      {canEdit && model !== '' && (
        <SaveModel settings={settings} onStored={(saved) => changeSettings({ saved, key: '' })} />
      )}
    </>
  );
}

/** Saves the model for everyone in the workspace. */
function SaveModel({ settings, onStored }: { settings: ModelSettings; onStored: (name: string) => void }) {
  const { kind, url, model, key } = settings;
  const [name, setName] = useState('');
  const savedName = name || toSlug(model).slice(0, 40);
  const input = { name: savedName, kind, model, url: url || undefined, key: key || undefined };
  const store = useAction({
    run: (values: typeof input) => api('saveModel', values),
    toast: () => `Saved ${savedName} for the workspace`,
    refresh: [queryKeys.models],
    onSuccess: (_, values) => onStored(values.name),
  });
  const formErrors = getFormErrors(store, input);
  const otherErrors = { ...formErrors, problems: formErrors.problems.filter(({ path }) => path !== 'name') };
  return (
    <Collapsible label="Save for workspace">
      <Text c="dimmed">
        Everyone in the workspace who can call tools can then use it. The key is encrypted and never shown again.
      </Text>
      <TextInput
        label="Save as"
        value={savedName}
        onChange={(event) => setName(event.currentTarget.value)}
        error={getFieldError(formErrors, 'name')}
      />
      <FormErrorAlert formErrors={otherErrors} title="Not saved" />
      <Button variant="default" loading={store.isPending} onClick={() => store.mutate(input)}>
        Save model
      </Button>
    </Collapsible>
  );
}
