import { Button, Group } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Empty } from '../../ui/states/empty.tsx';

/** The next steps with a server that nobody has called. */
export function NoCalls({ slug }: { slug: string }) {
  return (
    <div className="th-card">
      <Empty
        icon={<IconPlugConnected size={24} />}
        title="No calls in this time"
        text="Connect a client, or try a tool. Calls, and why they failed, appear here as they happen."
      >
        <Group gap="sm" mt="xs" justify="center">
          <Button component={Link} to={`/servers/${slug}/connect`}>
            Connect a client to {slug}
          </Button>
          <Button component={Link} to={`/servers/${slug}/try`} variant="default">
            Try a tool
          </Button>
        </Group>
      </Empty>
    </div>
  );
}
