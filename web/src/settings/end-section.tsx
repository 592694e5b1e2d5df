import { Button, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconDownload } from '@tabler/icons-react';
import { addressOf, api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { Confirm } from '../ui/actions/confirm.tsx';
import { useAction } from '../ui/actions/use-action.ts';
import { Section } from '../ui/section.tsx';
import { visible } from '../ui/text/visible.ts';

/** Taking the workspace elsewhere, and deleting it. */
export function EndSection() {
  const { workspace } = useSession();
  const isOwner = useIsOwner();
  const [isOpen, question] = useDisclosure(false);
  const remove = useAction({
    run: () => api('deleteWorkspace', { name: workspace.name }),
    onDone: () => location.assign(`${basePath}/`),
  });
  return (
    <Section title="Export and delete" text="The export has every configuration, and no value of a secret.">
      <Group gap="sm">
        <Button
          component="a"
          href={addressOf('exportWorkspace', {})}
          download
          variant="default"
          leftSection={<IconDownload size={16} />}
        >
          Export as JSON
        </Button>
        {/* That of local mode belongs to the machine, and stays. */}
        {isOwner && workspace.id.startsWith('wsp_') && (
          <Button variant="default" onClick={question.open}>
            Delete workspace…
          </Button>
        )}
      </Group>
      <Confirm
        opened={isOpen}
        title={`Delete ${visible(workspace.name)}?`}
        action="Delete workspace"
        word={workspace.name}
        isPending={remove.isPending}
        error={remove.error}
        onClose={question.close}
        onConfirm={() => remove.mutate()}
      >
        <Text size="sm">
          Its servers and keys stop working at once, for everybody. Secrets, members and webhooks are gone, and the
          slugs stay reserved. This cannot be undone.
        </Text>
      </Confirm>
    </Section>
  );
}
