import { Box, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { SecretsToSet } from './secrets-to-set.tsx';

type Props = {
  isNew: boolean;
  isChanged: boolean;
  isBehind: boolean;
  isSaving: boolean;
  problems: number;
  warnings: number;
  /** What is said of the version that is stored. */
  message: ReactNode;
  onSave: () => void;
  onReset: () => void;
};

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

function stateOf({ isNew, isChanged, isBehind, problems, warnings }: Props): string {
  if (problems > 0) return `${counted(problems, 'problem')} to solve`;
  if (isBehind && isChanged) return 'Checking…';
  const warned = warnings > 0 ? `, ${counted(warnings, 'warning')}` : '';
  if (isNew) return `Not stored yet${warned}`;
  return (isChanged ? 'Unsaved changes' : 'Everything is saved') + warned;
}

export function SaveBar(props: Props) {
  const { isNew, isChanged, isSaving, problems, message, onSave, onReset } = props;
  return (
    <Box className="th-card th-save-bar" p="sm">
      <SecretsToSet />
      <Group justify="space-between" gap="sm">
        <Text size="sm" role="status" c={problems > 0 ? 'error' : 'dimmed'}>
          {stateOf(props)}
        </Text>
        <Group gap="sm">
          {isChanged && message}
          {isChanged && !isNew && (
            <Button variant="default" size="sm" onClick={onReset}>
              Discard
            </Button>
          )}
          <Button size="sm" onClick={onSave} loading={isSaving} disabled={!isNew && !isChanged}>
            {isNew ? 'Create server' : 'Save'}
          </Button>
        </Group>
      </Group>
    </Box>
  );
}
