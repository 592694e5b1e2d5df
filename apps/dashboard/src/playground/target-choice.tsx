import { Select, Stack } from '@mantine/core';
import { getViews } from '../servers/config.ts';
import { useCurrentServer } from '../servers/server-page.tsx';
import { selectsText } from '../ui/actions/selects-text.ts';
import { toVisible } from '../ui/text/visible.ts';
import type { Target } from './conversation.ts';

/** Maximum versions to choose from: the default number that a workspace retains. */
const maxVersions = 50;

/** Choice of the tools that the model gets, and how it gets them. */
export function TargetChoice({ target, onChange }: { target: Target; onChange: (target: Target) => void }) {
  const { server, config } = useCurrentServer();
  const views = Object.keys(getViews(config));
  const olderVersions = Array.from(
    { length: Math.min(maxVersions, server.version - 1) },
    (_, i) => server.version - 1 - i,
  );
  const { view, mode, version } = target;
  const change = (next: Target) => onChange({ ...target, ...next });
  return (
    <Stack gap="sm">
      {views.length > 0 && (
        <Select
          label="Tools from"
          data={[
            { value: '', label: 'Server' },
            ...views.map((name) => ({ value: name, label: `View ${toVisible(name)}` })),
          ]}
          value={view ?? ''}
          onChange={(next) => change({ view: next || undefined })}
          allowDeselect={false}
        />
      )}
      <Select
        label="Tool delivery"
        data={[
          { value: '', label: 'Same as agents' },
          { value: 'list', label: 'List all tools' },
          { value: 'search', label: 'Search for tools' },
        ]}
        value={mode ?? ''}
        onChange={(next) => change({ mode: (next || undefined) as Target['mode'] })}
        allowDeselect={false}
      />
      {olderVersions.length > 0 && (
        <Select
          label="Version"
          data={[
            { value: '', label: `${server.version} (current)` },
            ...olderVersions.map((number) => ({ value: String(number), label: String(number) })),
          ]}
          value={version === undefined ? '' : String(version)}
          onChange={(next) => change({ version: next ? Number(next) : undefined })}
          allowDeselect={false}
          searchable={olderVersions.length > 10}
          {...selectsText}
        />
      )}
    </Stack>
  );
}
