import { Badge, Button, Checkbox, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { tokensOfLength } from '../../../../../src/domain/pieces/tokens.ts';
import type { Proposal } from '../../../answers.ts';
import { visible } from '../../../ui/text/visible.ts';
import { type FieldChoice, largestFirst, stateOf } from './field-choice.ts';

type Props = { choice: FieldChoice; whole: number; onToggle: (path: string) => void };
type Field = Proposal['fields'][number];

const shownAtFirst = 30;

const reasons: { [reason in NonNullable<Field['useless']>]: string } = {
  empty: 'always empty',
  constant: 'always the same',
  link: 'API link',
  id: 'internal ID',
  picture: 'image',
};

/** Tree of response fields with their share of the tokens. */
export function FieldRows({ choice, whole, onToggle }: Props) {
  const fields = largestFirst(choice.fields);
  const [isAll, setAll] = useState(fields.length <= shownAtFirst + 5);
  const shown = isAll ? fields : fields.slice(0, shownAtFirst);
  return (
    <Stack gap={4} component="ul" p={0} m={0} aria-label="Response fields" style={{ listStyle: 'none' }}>
      {shown.map((field) => (
        <li key={field.path}>
          <FieldRow field={field} choice={choice} whole={whole} onToggle={onToggle} />
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

function FieldRow({ field, choice, whole, onToggle }: Props & { field: Field }) {
  const { path, bytes, useless, always } = field;
  const names = path.split('.');
  const state = stateOf(choice, path);
  const tokens = tokensOfLength(bytes);
  return (
    <Group gap="sm" wrap="wrap" pl={`${Math.min(names.length - 1, 6) * 1.25}rem`}>
      <Checkbox
        label={
          <Text span className="th-mono">
            {visible(names.at(-1) ?? '')}
          </Text>
        }
        aria-label={visible(path)}
        checked={state === 'kept'}
        indeterminate={state === 'partly'}
        onChange={() => onToggle(path)}
      />
      <Text size="sm" c="dimmed">
        {tokens.toLocaleString('en')} tokens, {whole === 0 ? 0 : Math.min(100, Math.round((tokens / whole) * 100))}%
      </Text>
      {useless && <Badge color="yellow">{reasons[useless]}</Badge>}
      {always !== undefined && useless !== 'empty' && (
        <Text size="xs" c="dimmed" className="th-mono">
          {visible(always)}
        </Text>
      )}
    </Group>
  );
}
