import { Badge, Button, Popover } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { lazy, Suspense } from 'react';
import { Link } from 'react-router';
import type { ServerRecord } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { toVisible } from '../../ui/text/visible.ts';

const TagForm = lazy(async () => ({ default: (await import('./tag-form.tsx')).TagForm }));

/** Tags, each with a link to all servers that have it. */
export function Tags({ server: { tags = [] } }: { server: ServerRecord }) {
  return tags.map((tag) => (
    <Badge key={tag} component={Link} to={`/servers?${new URLSearchParams({ query: tag })}`} mr={4}>
      {toVisible(tag)}
    </Badge>
  ));
}

/** Button to edit the tags of a server. */
export function EditTags({ server }: { server: ServerRecord }) {
  const [isOpen, popover] = useDisclosure(false);
  if (!useCanEdit()) return null;
  return (
    <Popover opened={isOpen} onChange={popover.toggle} trapFocus withinPortal width={300} position="bottom-end">
      <Popover.Target>
        <Button variant="subtle" color="gray" size="compact-sm" fw={400} onClick={popover.toggle}>
          {server.tags?.length ? 'Edit tags' : 'Add tags'}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Suspense>
          <TagForm server={server} onDone={popover.close} />
        </Suspense>
      </Popover.Dropdown>
    </Popover>
  );
}
