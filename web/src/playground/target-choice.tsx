import { Select, Stack } from '@mantine/core';
import { viewsOf } from '../servers/config.ts';
import { useShownServer } from '../servers/server-page.tsx';
import { visible } from '../ui/text/visible.ts';
import type { Target } from './conversation.ts';

/** Versions to choose from: as many as a workspace keeps, unless its operator says otherwise. */
const mostVersions = 50;

/** Whose tools the model gets, and how. */
export function TargetChoice({ target, onChange }: { target: Target; onChange: (target: Target) => void }) {
  const { server, config } = useShownServer();
  const views = Object.keys(viewsOf(config));
  const older = Array.from({ length: Math.min(mostVersions, server.version - 1) }, (_, i) => server.version - 1 - i);
  const { view, mode, version } = target;
  const change = (next: Target) => onChange({ ...target, ...next });
  return (
    <Stack gap="sm">
      {views.length > 0 && (
        <Select
          label="Tools of"
          data={[
            { value: '', label: 'The server' },
            ...views.map((name) => ({ value: name, label: `The view ${visible(name)}` })),
          ]}
          value={view ?? ''}
          onChange={(next) => change({ view: next || undefined })}
          allowDeselect={false}
        />
      )}
      <Select
        label="The model gets"
        data={[
          { value: '', label: 'What agents get' },
          { value: 'list', label: 'All tools, listed' },
          { value: 'search', label: 'A search for tools' },
        ]}
        value={mode ?? ''}
        onChange={(next) => change({ mode: (next || undefined) as Target['mode'] })}
        allowDeselect={false}
      />
      {older.length > 0 && (
        <Select
          label="Version"
          data={[
            { value: '', label: `${server.version}, the current one` },
            ...older.map((number) => ({ value: String(number), label: String(number) })),
          ]}
          value={version === undefined ? '' : String(version)}
          onChange={(next) => change({ version: next ? Number(next) : undefined })}
          allowDeselect={false}
          searchable={older.length > 10}
        />
      )}
    </Stack>
  );
}
