import { Button } from '@mantine/core';
import { Link } from 'react-router';

type Props = { label: string; subject?: string; onClick?: () => void; to?: string; isPending?: boolean };

/** Button or link in a table row. Its accessible name includes the row. */
export function RowButton({ label, subject = '', onClick, to, isPending = false }: Props) {
  const link = to !== undefined && { renderRoot: (props: object) => <Link {...props} to={to} /> };
  const name = `${label} ${subject}`.trim();
  return (
    <Button size="compact-sm" variant="default" aria-label={name} onClick={onClick} loading={isPending} {...link}>
      {label}
    </Button>
  );
}
