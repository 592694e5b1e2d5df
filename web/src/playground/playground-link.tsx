import { Button } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { Link } from 'react-router';

/** The way to the playground of a server, or of one of its views. */
export function PlaygroundLink({ slug, view }: { slug: string; view?: string | undefined }) {
  const query = view === undefined ? '' : `?${new URLSearchParams({ view })}`;
  return (
    <Button
      component={Link}
      to={`/servers/${slug}/playground${query}`}
      variant="default"
      leftSection={<IconMessages size={16} />}
      style={{ alignSelf: 'flex-start' }}
    >
      Ask a model in the playground
    </Button>
  );
}
