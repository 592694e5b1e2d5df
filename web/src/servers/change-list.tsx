import { Stack, Text } from '@mantine/core';
import type { Change } from '../answers.ts';
import { queryKeys } from '../query-keys.ts';
import { Folded } from '../ui/folded.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { visible, visibleJson } from '../ui/text/visible.ts';
import { useAnswer } from '../use-answer.ts';

/** Labels for the two values of a change. */
export type Signs = { before: string; after: string };

type Props = { changes: readonly Change[]; signs: Signs; label: string };

/** Length above which values are collapsed. */
const longValue = 240;

/** List of changes in plain language, each with its values. */
export function ChangeList({ changes, signs, label }: Props) {
  if (changes.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No differences.
      </Text>
    );
  }
  return (
    <Stack component="section" gap="xs" aria-label={label}>
      {changes.map(({ path, text, ...values }) => {
        const [before, after] = [valueText(values.before), valueText(values.after)];
        const sides = (
          <div>
            {before !== undefined && <Side kind="removed" sign={signs.before} value={before} />}
            {after !== undefined && <Side kind="added" sign={signs.after} value={after} />}
          </div>
        );
        if ((before?.length ?? 0) + (after?.length ?? 0) > longValue)
          return (
            <Folded key={path} label={visible(text)}>
              {sides}
            </Folded>
          );
        return (
          <div key={path}>
            <Text size="sm" fw={550}>
              {visible(text)}
            </Text>
            {sides}
          </div>
        );
      })}
    </Stack>
  );
}

function valueText(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : visibleJson(value);
}

/** One value of a change. */
export function Side({ kind, sign, value }: { kind: 'removed' | 'added'; sign: string; value: string | undefined }) {
  return (
    <div className="th-side" data-kind={kind}>
      <span>{sign}</span>
      <span>{value === undefined ? <em>not set</em> : visible(value)}</span>
    </div>
  );
}

/** Changes from one version of a server to another. */
export function VersionChanges({ slug, from, to }: { slug: string; from: number; to: number }) {
  const query = useAnswer(
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
          signs={{ before: `version ${from}`, after: `version ${to}` }}
          label={`Changes from version ${from} to version ${to}`}
        />
      )}
    </Loaded>
  );
}
