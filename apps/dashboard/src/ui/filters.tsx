import { Button, Group, Select, type SelectProps } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';

type Props = {
  label: string;
  /** Clears all filters; undefined if none is set. */
  onClear: (() => void) | undefined;
  /** Content next to the filters. */
  actions?: ReactNode;
  children: ReactNode;
};

export function Filters({ label, onClear, actions, children }: Props) {
  return (
    <Group gap="sm" mb="md" role="search" aria-label={label} align="flex-end">
      {children}
      {onClear && (
        <Button variant="subtle" color="gray" leftSection={<IconX size={16} stroke={1.5} />} onClick={onClear}>
          Clear
        </Button>
      )}
      {actions}
    </Group>
  );
}

/** Filter with values to choose from. No selection shows everything. */
export function FilterSelect(props: SelectProps) {
  return <Select placeholder="All" clearable className="th-filter" {...props} />;
}
