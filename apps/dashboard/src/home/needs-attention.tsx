import { Alert, List } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { queryKeys } from '../query-keys.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';

export type Item = { label: string; text: string; to: string };

/** Fetches the pending actions of a server, or of the whole workspace. */
export function usePendingActions(slug?: string) {
  return useOperationQuery([...queryKeys.servers, 'needs', slug], 'listPendingActions', slug ? { slug } : {});
}

const maxShown = 5;

/** Pending actions, each with a link. */
export function NeedsAttention({ items }: { items: readonly Item[] }) {
  if (items.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title="Needs attention">
      <Items items={items.slice(0, maxShown)} />
      {items.length > maxShown && (
        <Collapsible label={`${items.length - maxShown} more`}>
          <Items items={items.slice(maxShown)} />
        </Collapsible>
      )}
    </Alert>
  );
}

function Items({ items }: { items: readonly Item[] }) {
  return (
    <List size="sm" spacing={4} listStyleType="none">
      {items.map(({ label, text, to }) => (
        <List.Item key={`${label} ${text}`}>
          <TextLink to={to} underline="always" className="th-mono">
            {toVisible(label)}
          </TextLink>
          : {toVisible(text)}
        </List.Item>
      ))}
    </List>
  );
}
