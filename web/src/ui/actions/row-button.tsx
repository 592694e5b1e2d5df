import { Button } from '@mantine/core';
import { Link } from 'react-router';

type Props = { label: string; of?: string; onClick?: () => void; to?: string; isPending?: boolean };

/** A button or link in a row of a list; its name for screen readers says of which row. */
export function RowButton({ label, of = '', onClick, to, isPending = false }: Props) {
  const link = to !== undefined && { renderRoot: (props: object) => <Link {...props} to={to} /> };
  const name = `${label} ${of}`.trim();
  return (
    <Button size="compact-sm" variant="default" aria-label={name} onClick={onClick} loading={isPending} {...link}>
      {label}
    </Button>
  );
}
