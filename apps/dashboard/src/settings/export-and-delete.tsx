import { Button, Group } from '@mantine/core';
import { api, getOperationUrl } from '../api.ts';
import type { Workspace } from '../api-types.ts';
import { basePath } from '../base-path.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { ExportButton } from '../ui/actions/export-button.tsx';
import { useConfirmation } from '../ui/actions/use-confirmation.tsx';
import { Section } from '../ui/section.tsx';
import { toVisible } from '../ui/text/visible.ts';

/** Export and deletion of the workspace. */
export function ExportAndDeleteSection() {
  const { workspace } = useSession();
  // The workspace of local mode belongs to the machine and cannot be deleted.
  const canDelete = useIsOwner() && workspace.id.startsWith('wsp_');
  const remove = useConfirmation({
    title: ({ name }: Workspace) => `Delete ${toVisible(name)}?`,
    text: () =>
      'Its servers and keys stop working immediately, for everyone. Secrets, members, and webhooks are deleted, and the slugs stay reserved. This cannot be undone.',
    action: 'Delete workspace',
    confirmText: workspace.name,
    run: ({ name }) => api('deleteWorkspace', { name }),
    onSuccess: () => location.assign(`${basePath}/`),
  });
  return (
    <Section
      title={canDelete ? 'Export and delete' : 'Export'}
      text="The export contains all configurations, but no secret values."
    >
      <Group gap="sm">
        <ExportButton href={getOperationUrl('exportWorkspace', {})}>Export JSON</ExportButton>
        {canDelete && (
          <Button variant="default" onClick={() => remove.ask(workspace)}>
            Delete workspace…
          </Button>
        )}
      </Group>
      {remove.dialog}
    </Section>
  );
}
