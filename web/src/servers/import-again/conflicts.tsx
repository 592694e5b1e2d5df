import { Button, Group, Radio, Stack, Text } from '@mantine/core';
import type { ImportAgainPlan } from '../../answers.ts';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { MoreOf } from './more-of.tsx';

type Conflict = ImportAgainPlan['conflicts'][number];

type Props = {
  plan: ImportAgainPlan;
  /** Keys of the conflicts in which the description is right; `*` is all of them. */
  taken: ReadonlySet<string>;
  onTaken: (taken: ReadonlySet<string>) => void;
};

/** Values that were edited and that the description changed too, to be chosen one by one. */
export function Conflicts({ plan: { conflicts, counts }, taken, onTaken }: Props) {
  if (counts.conflicts === 0) return null;
  const all = () => new Set(counts.conflicts > conflicts.length ? ['*'] : conflicts.map(({ key }) => key));
  const choose = (key: string, isTaken: boolean) => {
    const next = new Set(taken.has('*') ? conflicts.map((conflict) => conflict.key) : taken);
    if (isTaken) next.add(key);
    else next.delete(key);
    onTaken(next);
  };
  return (
    <Section
      title={counts.conflicts === 1 ? '1 conflict' : `${counts.conflicts} conflicts`}
      text="You have edited these values, and the description has changed them too. Yours stay unless you choose otherwise."
      actions={
        <Group gap="sm">
          <Button variant="default" size="xs" onClick={() => onTaken(new Set())}>
            Keep all of mine
          </Button>
          <Button variant="default" size="xs" onClick={() => onTaken(all())}>
            Take all of the description
          </Button>
        </Group>
      }
    >
      <Stack gap="sm">
        <MoreOf entries={conflicts} count={counts.conflicts} of="conflicts">
          {(conflict) => (
            <Choice
              key={conflict.key}
              conflict={conflict}
              isTaken={taken.has('*') || taken.has(conflict.key)}
              onChoice={(isTaken) => choose(conflict.key, isTaken)}
            />
          )}
        </MoreOf>
      </Stack>
    </Section>
  );
}

type ChoiceProps = { conflict: Conflict; isTaken: boolean; onChoice: (isTaken: boolean) => void };

function Choice({ conflict: { tool, path, before, yours, document }, isTaken, onChoice }: ChoiceProps) {
  return (
    <Radio.Group
      className="th-pick-group"
      label={<span className="th-mono">{visible(tool === undefined ? path : `${tool}: ${path}`)}</span>}
      value={isTaken ? 'document' : 'yours'}
      onChange={(side) => onChoice(side === 'document')}
    >
      <Stack gap={6} pt={6}>
        <Text size="xs" c="dimmed" className="th-value">
          At the last import: {shown(before)}
        </Text>
        <Radio value="yours" label={<Value name="Mine" text={yours} />} />
        <Radio value="document" label={<Value name="Description" text={document} />} />
      </Stack>
    </Radio.Group>
  );
}

function Value({ name, text }: { name: string; text: string | undefined }) {
  return (
    <span className="th-value">
      <strong>{name}:</strong> {shown(text)}
    </span>
  );
}

const shown = (text: string | undefined) => (text === undefined ? 'nothing' : visible(text));
