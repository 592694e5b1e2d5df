import { Button } from '@mantine/core';

type Props = { label: string; of: string; onClick: () => void; isPending?: boolean };

/** A button in a row of a list; its name for screen readers says of which row. */
export function RowButton({ label, of, onClick, isPending = false }: Props) {
  return (
    <Button size="compact-sm" variant="default" aria-label={`${label} ${of}`} onClick={onClick} loading={isPending}>
      {label}
    </Button>
  );
}
