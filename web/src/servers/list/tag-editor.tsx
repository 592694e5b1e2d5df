import { ActionIcon, Badge, Button, Group, Popover } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconTag } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import type { ServerRecord } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { messageOf, sentence } from '../../ui/states/problem-alert.tsx';
import { TagsInput } from '../../ui/tags-input.tsx';
import { visible } from '../../ui/text/visible.ts';

const none: string[] = [];

/** The words that people sort a server by, with a way to change them; each leads to all servers that have it. */
export function Tags({ server }: { server: ServerRecord }) {
  const canEdit = useCanEdit();
  const [isOpen, popover] = useDisclosure(false);
  const name = visible(server.name);
  return (
    <Group gap={4}>
      {(server.tags ?? none).map((tag) => (
        <Badge
          key={tag}
          component={Link}
          to={`/servers?${new URLSearchParams({ query: tag })}`}
          color="gray"
          className="th-badge-link"
        >
          {visible(tag)}
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
            <TagForm server={server} onDone={popover.close} />
          </Popover.Dropdown>
        </Popover>
      )}
    </Group>
  );
}

function TagForm({ server, onDone }: { server: ServerRecord; onDone: () => void }) {
  const [tags, setTags] = useState(server.tags ?? none);
  const save = useAction({
    run: (next: string[]) => api('setServerTags', { slug: server.slug, tags: next }),
    done: () => `Saved the tags of ${visible(server.name)}`,
    refresh: [queryKeys.servers],
    onDone,
  });
  const { problems, failure } = refusalOf(save, tags);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(tags);
      }}
    >
      <TagsInput
        label="Tags"
        description="Words to find servers by, up to ten; Enter adds one. Agents never see them."
        value={tags}
        onChange={setTags}
        maxTags={10}
        error={problems[0] ? sentence(problems[0].message) : failure && messageOf(failure)}
        data-autofocus
      />
      <Button type="submit" size="xs" mt="sm" loading={save.isPending}>
        Save tags
      </Button>
    </form>
  );
}
