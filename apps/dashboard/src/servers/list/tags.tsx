import { ActionIcon, Badge, Group, Popover } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconTag } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { Link } from 'react-router';
import type { ServerRecord } from '../../api-types.ts';
import { useCanEdit } from '../../frame/session.ts';
import { toVisible } from '../../ui/text/visible.ts';

const TagForm = lazy(async () => ({ default: (await import('./tag-form.tsx')).TagForm }));

/** Tags of a server, with a button to edit them. Each tag links to all servers that have it. */
export function Tags({ server }: { server: ServerRecord }) {
  const canEdit = useCanEdit();
  const [isOpen, popover] = useDisclosure(false);
  const name = toVisible(server.name);
  return (
    <Group gap={4}>
      {server.tags?.map((tag) => (
        <Badge
          key={tag}
          component={Link}
          to={`/servers?${new URLSearchParams({ query: tag })}`}
          color="gray"
          className="th-badge-link"
        >
          {toVisible(tag)}
        </Badge>
      ))}
      {canEdit && (
        <Popover opened={isOpen} onChange={popover.toggle} trapFocus withinPortal width={300} position="bottom-start">
          <Popover.Target>
            <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Tags of ${name}`} onClick={popover.toggle}>
              <IconTag size={14} aria-hidden />
            </ActionIcon>
          </Popover.Target>
          <Popover.Dropdown>
            <Suspense>
              <TagForm server={server} onDone={popover.close} />
            </Suspense>
          </Popover.Dropdown>
        </Popover>
      )}
    </Group>
  );
}
