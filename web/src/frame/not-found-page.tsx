import { Button } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconMapOff } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Empty } from '../ui/states/empty.tsx';

export function NotFoundPage() {
  useDocumentTitle('Not found – Toolhost');
  return (
    <Empty
      icon={<IconMapOff size={24} />}
      title="There is nothing here"
      order={1}
      text="The address may be old or mistyped."
    >
      <Button component={Link} to="/servers" mt="sm">
        To the servers
      </Button>
    </Empty>
  );
}
