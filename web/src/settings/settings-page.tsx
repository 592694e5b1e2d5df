import { Stack } from '@mantine/core';
import { PageHeader } from '../ui/page-header.tsx';
import { AgentsSection } from './agents-section.tsx';
import { MembersSection } from './members-section.tsx';
import { QuotasSection } from './quotas-section.tsx';
import { RetentionSection } from './retention-section.tsx';
import { WorkspaceSection } from './workspace-section.tsx';

export function SettingsPage() {
  return (
    <>
      <PageHeader title="Settings" text="The workspace and who belongs to it." />
      <Stack gap="md">
        <WorkspaceSection />
        <MembersSection />
        <AgentsSection />
        <RetentionSection />
        <QuotasSection />
      </Stack>
    </>
  );
}
