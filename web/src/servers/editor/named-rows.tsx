import { ActionIcon, Button, Group, Input, Stack } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Errors, Warnings } from './field-messages.tsx';
import type { useField } from './model/editor-context.ts';

type Props = {
  label: string;
  text: string;
  field: ReturnType<typeof useField>;
  rows: readonly { name: string }[];
  addLabel: string;
  onAdd: () => void;
  children: ReactNode;
};

/** A field whose value is an object with a row for each name, and a button that adds one. */
export function NamedRows({ label, text, field, rows, addLabel, onAdd, children }: Props) {
  return (
    <Input.Wrapper label={label} description={text} labelElement="div">
      <Stack gap={6} mt={6} id={field.id} tabIndex={-1}>
        {children}
        {!field.isReadOnly && (
          <Group>
            <Button variant="subtle" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={onAdd}>
              {addLabel}
            </Button>
          </Group>
        )}
        <Errors list={field.errorsBeside(rows.map(({ name }) => name))} />
        <Warnings list={field.warnings} />
      </Stack>
    </Input.Wrapper>
  );
}

/** The button that removes a row. `what` names the row for screen readers. */
export function RemoveRow({ what, onRemove }: { what: string; onRemove: () => void }) {
  return (
    <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove ${what}`} onClick={onRemove}>
      <IconX size={16} />
    </ActionIcon>
  );
}
