import { Stack, Text } from '@mantine/core';
import type { Change } from '../answers.ts';
import { Folded } from '../ui/folded.tsx';
import { sentence } from '../ui/states/problem-alert.tsx';
import { visibleJson } from '../ui/text/visible.ts';
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
      {changes.map(({ path, text, before, after }) => {
        const sides = [valueText(before), valueText(after)] as const;
        const values = (
          <div>
            {sides[0] !== undefined && <Side kind="removed" sign={signs.before} value={sides[0]} />}
            {sides[1] !== undefined && <Side kind="added" sign={signs.after} value={sides[1]} />}
          </div>
        );
        const isShort = sides.every((side) => (side?.length ?? 0) <= longValue);
        return isShort ? (
          <div key={path}>
            <Text size="sm" fw={550}>
              {sentence(text)}
            </Text>
            {values}
          </div>
        ) : (
          <Folded key={path} label={sentence(text)}>
            {values}
          </Folded>
        );
      })}
    </Stack>
  );
}

function valueText(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : visibleJson(value);
}
