import { Anchor, Group, Text } from '@mantine/core';
import { Link } from 'react-router';
import { CopyButton } from '../../../ui/actions/copy-button.tsx';
import { visible } from '../../../ui/text/visible.ts';
import { viewsOf } from '../../config.ts';
import { useShownServer } from '../../server-page.tsx';

/** The address of a view of a stored server, and the page on which a client is connected to it. */
export function ViewAddress({ name }: { name: string }) {
  const { server, config } = useShownServer();
  const url = `${server.url}/${name}`;
  if (!Object.hasOwn(viewsOf(config), name)) {
    return (
      <Text size="sm" c="dimmed">
        Once it is saved, agents reach it at {visible(url)}.
      </Text>
    );
  }
  return (
    <Group gap="xs">
      <Text className="th-mono" size="sm">
        {visible(url)}
      </Text>
      <CopyButton value={url} label={`Copy the address of ${visible(name)}`} />
      <Anchor component={Link} to={`/servers/${server.slug}/connect?view=${encodeURIComponent(name)}`} size="sm">
        Connect a client to this view
      </Anchor>
    </Group>
  );
}
