import { Anchor, type AnchorProps } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';

export function TextLink({ to, ...rest }: AnchorProps & { to: string; children: ReactNode }) {
  return <Anchor component={Link} to={to} size="sm" {...rest} />;
}
