import { Button, Group, Select, type SelectProps } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';

type Props = {
  label: string;
  /** The way back to the whole list; undefined where all of it is shown. */
  onClear: (() => void) | undefined;
  /** What stands beside the filters. */
  beside?: ReactNode;
  children: ReactNode;
};

/** The filters of a list. */
export function Filters({ label, onClear, beside, children }: Props) {
  return (
    <Group gap="sm" mb="md" role="search" aria-label={label} align="flex-end">
      {children}
      {onClear && (
        <Button variant="subtle" color="gray" leftSection={<IconX size={15} />} onClick={onClear}>
          Clear
        </Button>
      )}
      {beside}
    </Group>
  );
}

/** A filter with some values to choose from; no choice shows everything. */
export function Choice(props: SelectProps) {
  return <Select placeholder="All" clearable className="th-filter" {...props} />;
}
