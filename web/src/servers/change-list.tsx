import { Stack, Text } from '@mantine/core';
import type { Change } from '../answers.ts';
import { Folded } from '../ui/folded.tsx';
import { visible, visibleJson } from '../ui/text/visible.ts';
import { Side } from './import-again/field-changes.tsx';

type Props = { changes: readonly Change[]; signs: { before: string; after: string }; label: string };

/** Longer values are shown on request. */
const longValue = 240;

/** Changes by their meaning, each with its values. */
export function ChangeList({ changes, signs, label }: Props) {
  if (changes.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        There is no difference.
      </Text>
    );
  }
  return (
    <Stack component="section" gap="xs" aria-label={label}>
      {changes.map((change) => (
        <OneChange key={change.path} change={change} signs={signs} />
      ))}
    </Stack>
  );
}

function OneChange({ change, signs }: { change: Change; signs: Props['signs'] }) {
  const text = visible(change.text);
  const [before, after] = [valueText(change.before), valueText(change.after)];
  const values = (
    <div>
      {before !== undefined && <Side kind="removed" sign={signs.before} value={before} />}
      {after !== undefined && <Side kind="added" sign={signs.after} value={after} />}
    </div>
  );
  if ((before?.length ?? 0) + (after?.length ?? 0) > longValue) return <Folded label={text}>{values}</Folded>;
  return (
    <div>
      <Text size="sm" fw={550}>
        {text}
      </Text>
      {values}
    </div>
  );
}

function valueText(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : visibleJson(value);
}
