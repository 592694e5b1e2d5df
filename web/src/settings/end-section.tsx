import { Button, Group, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconDownload } from '@tabler/icons-react';
import { addressOf, api } from '../api.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { ConfirmAction } from '../ui/actions/confirm.tsx';
import { Section } from '../ui/section.tsx';
import { visible } from '../ui/text/visible.ts';

/** Taking the workspace elsewhere, and deleting it. */
export function EndSection() {
  const { workspace } = useSession();
  const isOwner = useIsOwner();
  const [isOpen, question] = useDisclosure(false);
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
      <ConfirmAction
        subject={isOpen ? workspace : undefined}
        title={({ name }) => `Delete ${visible(name)}?`}
        action="Delete workspace"
        word={workspace.name}
        run={({ name }) => api('deleteWorkspace', { name })}
        onDone={() => location.assign(`${basePath}/`)}
        onClose={question.close}
      >
        <Text size="sm">
          Its servers and keys stop working at once, for everybody. Secrets, members and webhooks are gone, and the
          slugs stay reserved. This cannot be undone.
        </Text>
      </ConfirmAction>
    </Section>
  );
}
