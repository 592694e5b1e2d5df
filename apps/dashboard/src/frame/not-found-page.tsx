import { Button } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconMapOff } from '@tabler/icons-react';
import { Link } from 'react-router';
import { Empty } from '../ui/states/empty.tsx';

export function NotFoundPage() {
  useDocumentTitle('Not found – Toolhost');
  return (
    <Empty icon={<IconMapOff size={24} />} title="Page not found" order={1} text="The URL may be outdated or mistyped.">
      <Button component={Link} to="/servers" mt="sm">
        Go to servers
      </Button>
    </Empty>
  );
}
