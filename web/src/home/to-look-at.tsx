import { Alert, List } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Folded } from '../ui/folded.tsx';
import { TextLink } from '../ui/text/text-link.tsx';
import { visible } from '../ui/text/visible.ts';

export type Item = { label: string; text: string; to: string };

const mostShown = 5;

/** Pending actions, each with a link. */
export function ToLookAt({ items }: { items: readonly Item[] }) {
  if (items.length === 0) return null;
  return (
    <Alert color="yellow" icon={<IconAlertTriangle size={18} />} title="Needs attention">
      <Items items={items.slice(0, mostShown)} />
      {items.length > mostShown && (
        <Folded label={`${items.length - mostShown} more`}>
          <Items items={items.slice(mostShown)} />
        </Folded>
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
            {visible(label)}
          </TextLink>
          : {visible(text)}
        </List.Item>
      ))}
    </List>
  );
}
