import { Box, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { queryKeys } from '../query-keys.ts';
import { Collapsible } from '../ui/collapsible.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { useOperationQuery } from '../use-operation-query.ts';

export type Item = { label: string; text: string; to: string; action: string };

/** Fetches the pending actions of a server, or of the whole workspace. */
export function usePendingActions(slug?: string) {
  return useOperationQuery([...queryKeys.servers, 'needs', slug], 'listPendingActions', slug ? { slug } : {});
}

const maxShown = 5;

/** Pending actions, each with a link. */
export function NeedsAttention({ items }: { items: readonly Item[] }) {
  if (items.length === 0) return null;
  return (
    <Box component="section" className="th-card" px="md" py="sm" aria-label="Needs attention">
      <Items items={items.slice(0, maxShown)} />
      {items.length > maxShown && (
        <Collapsible label={`${items.length - maxShown} more`}>
          <Items items={items.slice(maxShown)} />
        </Collapsible>
      )}
    </Box>
  );
}

function Items({ items }: { items: readonly Item[] }) {
  return (
    <List size="sm" spacing="xs" center icon={<IconAlertTriangle size={16} color="var(--th-warn)" aria-hidden />}>
      {items.map(({ label, text, to, action }) => (
        <List.Item key={`${label} ${text}`}>
          <Text span size="sm">
            <span className="th-mono">{toVisible(label)}</span>: {toVisible(text.replace(/\.?$/, '.'))}{' '}
            <TextLink to={to} inherit>
              {action}
            </TextLink>
          </Text>
        </List.Item>
      ))}
    </List>
  );
}
