import { Menu } from '@mantine/core';
import { Link } from 'react-router';

type Props = { label: string; subject?: string; onClick?: () => void; to?: string; isPending?: boolean };

/** Action or link in the menu of a table row. Its accessible name includes the row. */
export function RowButton({ label, subject = '', onClick, to, isPending = false }: Props) {
  const link = to !== undefined && { renderRoot: (props: object) => <Link {...props} to={to} /> };
  return (
    <Menu.Item aria-label={`${label} ${subject}`.trim()} onClick={onClick} disabled={isPending} {...link}>
      {label}
    </Menu.Item>
  );
}
