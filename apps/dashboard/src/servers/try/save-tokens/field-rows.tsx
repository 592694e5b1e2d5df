import { Badge, Button, Checkbox, Group, Stack, Text } from '@mantine/core';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import { useState } from 'react';
import { toVisible } from '../../../ui/text/visible.ts';
import { type Field, type FieldChoice, getFieldState, sortBySize } from './field-choice.ts';

type Props = { choice: FieldChoice; totalTokens: number; onToggle: (path: string) => void };

/** Number of fields shown at first. Five more are shown without a button. */
const initialCount = 30;

const reasons: { [reason in NonNullable<Field['useless']>]: string } = {
  empty: 'always empty',
  constant: 'always the same',
  link: 'API link',
  id: 'internal ID',
  picture: 'image',
};

/** Tree of response fields with their share of the tokens. */
export function FieldRows({ choice, totalTokens, onToggle }: Props) {
  const fields = sortBySize(choice.fields);
  const [isAll, setAll] = useState(fields.length <= initialCount + 5);
  const shownFields = isAll ? fields : fields.slice(0, initialCount);
  return (
    <Stack gap={4} component="ul" p={0} m={0} aria-label="Response fields" style={{ listStyle: 'none' }}>
      {shownFields.map((field) => (
        <li key={field.path}>
          <FieldRow field={field} choice={choice} totalTokens={totalTokens} onToggle={onToggle} />
        </li>
      ))}
      {!isAll && (
        <li>
          <Button size="compact-sm" variant="subtle" onClick={() => setAll(true)}>
            Show all {fields.length} fields
          </Button>
        </li>
      )}
    </Stack>
  );
}

function FieldRow({ field, choice, totalTokens, onToggle }: Props & { field: Field }) {
  const { path, bytes, useless, always } = field;
  const names = path.split('.');
  const state = getFieldState(choice, path);
  const tokens = estimateTokenCount(bytes);
  return (
    <Group gap="sm" wrap="wrap" pl={`${Math.min(names.length - 1, 6) * 1.25}rem`}>
      <Checkbox
        label={
          <Text span className="th-mono">
            {toVisible(names.at(-1) ?? '')}
          </Text>
        }
        aria-label={toVisible(path)}
        checked={state === 'kept'}
        indeterminate={state === 'partly'}
        onChange={() => onToggle(path)}
      />
      <Text c="dimmed">
        {tokens.toLocaleString('en')} tokens,{' '}
        {totalTokens === 0 ? 0 : Math.min(100, Math.round((tokens / totalTokens) * 100))}%
      </Text>
      {useless && <Badge color="yellow">{reasons[useless]}</Badge>}
      {always !== undefined && useless !== 'empty' && (
        <Text size="xs" c="dimmed" className="th-mono">
          {toVisible(always)}
        </Text>
      )}
    </Group>
  );
}
