import { Stack, Text } from '@mantine/core';
import type { Change } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { toVisible, toVisibleJson } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';

/** Labels for the two values of a change. */
export type ChangeLabels = { before: string; after: string };

type Props = { changes: readonly Change[]; labels: ChangeLabels; label: string };

/** Length above which values are collapsed. */
const collapseLength = 240;

/** List of changes in plain language, each with its values. */
export function ChangeList({ changes, labels, label }: Props) {
  if (changes.length === 0) {
    return <Text c="dimmed">No differences.</Text>;
  }
  return (
    <Stack component="section" gap="xs" aria-label={label}>
      {changes.map(({ path, text, ...values }) => {
        const [before, after] = [formatValue(values.before), formatValue(values.after)];
        const sides = (
          <div>
            {before !== undefined && <Side kind="removed" label={labels.before} value={before} />}
            {after !== undefined && <Side kind="added" label={labels.after} value={after} />}
          </div>
        );
        if ((before?.length ?? 0) + (after?.length ?? 0) > collapseLength)
          return (
            <Collapsible key={path} label={toVisible(text)}>
              {sides}
            </Collapsible>
          );
        return (
          <div key={path}>
            <Text fw={500}>{toVisible(text)}</Text>
            {sides}
          </div>
        );
      })}
    </Stack>
  );
}

function formatValue(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : toVisibleJson(value);
}

/** One value of a change. */
export function Side({ kind, label, value }: { kind: 'removed' | 'added'; label: string; value: string | undefined }) {
  return (
    <div className="th-side" data-kind={kind}>
      <span>{label}</span>
      <span>{value === undefined ? <em>not set</em> : toVisible(value)}</span>
    </div>
  );
}

export function VersionChanges({ slug, from, to }: { slug: string; from: number; to: number }) {
  const query = useOperationQuery(
    [...queryKeys.versions(slug), from, to],
    'compareVersions',
    { slug, before: from, version: to },
    // Versions are immutable.
    { staleTime: Number.POSITIVE_INFINITY },
  );
  return (
    <Loaded query={query}>
      {({ changes }) => (
        <ChangeList
          changes={changes}
          labels={{ before: `version ${from}`, after: `version ${to}` }}
          label={`Changes from version ${from} to version ${to}`}
        />
      )}
    </Loaded>
  );
}
