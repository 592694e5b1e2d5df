import { Badge } from '@mantine/core';
import type { Call } from '../answers.ts';
import { outcomes } from './call-filter.ts';

export function OutcomeBadge({ call: { outcome, upstream_status } }: { call: Call }) {
  const color = outcome === 'ok' ? 'green' : outcome === 'cancelled' || outcome === 'limited' ? 'yellow' : 'red';
  const text = outcome === 'upstream_status' && upstream_status ? `API answered ${upstream_status}` : outcomes[outcome];
  return <Badge color={color}>{text ?? outcome}</Badge>;
}
