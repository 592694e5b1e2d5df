import { Button, Group, List, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { api } from '../api.ts';
import type { Quotas } from '../api-types.ts';
import { useIsOwner, useSession } from '../frame/session.ts';
import { queryKeys } from '../query-keys.ts';
import { getFormErrorText } from '../ui/actions/form-errors.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { type Column, Count, Rows } from '../ui/rows.tsx';
import { Section } from '../ui/section.tsx';
import { LoadTogether } from '../ui/states/load-together.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';
import { useOperationQuery } from '../use-operation-query.ts';
import { ExportAndDeleteSection } from './export-and-delete.tsx';
import { FormerMembersSection } from './member-access.tsx';
import { MembersSection } from './members-section.tsx';
import { RoleGroupsSection } from './role-groups-section.tsx';

export function SettingsPage() {
  return (
    <>
      <PageHeader title="Settings" guide="docs/tutorial-team.md" />
      <LoadTogether>
        <Stack gap="md">
          <WorkspaceSection />
          <MembersSection />
          <RoleGroupsSection />
          <FormerMembersSection />
          <AgentsSection />
          <RetentionSection />
          <QuotasSection />
          <ExportAndDeleteSection />
        </Stack>
      </LoadTogether>
    </>
  );
}

function WorkspaceSection() {
  const { workspace } = useSession();
  const isOwner = useIsOwner();
  const form = useForm({ initialValues: { name: workspace.name } });
  const rename = useAction({
    run: ({ name }: { name: string }) => api('renameWorkspace', { name }),
    toast: () => 'Renamed the workspace',
    refresh: [queryKeys.session],
  });
  return (
    <Section title="Workspace">
      <form onSubmit={form.onSubmit((values) => rename.mutate(values))}>
        <Group gap="sm" align="flex-start">
          <TextInput
            label="Workspace name"
            flex="1 1 16rem"
            maw={420}
            {...form.getInputProps('name')}
            error={getFormErrorText(rename, form.values)}
            readOnly={!isOwner}
          />
          {isOwner && (
            <Button
              type="submit"
              variant="default"
              className="th-aligned"
              loading={rename.isPending}
              disabled={form.values.name === workspace.name}
            >
              Rename
            </Button>
          )}
        </Group>
      </form>
    </Section>
  );
}

/** Command that connects an agent to the management server, which can do everything that the dashboard can. */
function AgentsSection() {
  const { management_url } = useSession();
  return (
    <Section title="Agents" text="Lets an agent manage servers with your permissions. It needs no API key.">
      <CodeBlock
        code={getClaudeCodeCommand({ name: 'toolhost', url: management_url, token: undefined })}
        label="command for Claude Code"
      />
    </Section>
  );
}

function RetentionSection() {
  const { call_retention_days: calls, audit_retention_days: audit } = useSession();
  const formatDays = (count: number) => (count === 1 ? '1 day' : `${count} days`);
  const retentionTexts = [
    `Calls: ${formatDays(calls)}, without arguments and bodies.`,
    'Captured calls: up to 1 day and the latest 4,000, only while capture is on for a server.',
    `Audit events, revoked and expired keys, and revoked logins: ${formatDays(audit)}.`,
    'Invitations: 90 days.',
    'Server versions: the latest, up to the quota.',
  ];
  return (
    <Section title="Retention" text="Set by the operator of this service.">
      <List size="sm" spacing={4}>
        {retentionTexts.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
    </Section>
  );
}

const quotaLabels: [name: keyof Quotas, label: string][] = [
  ['servers', 'Servers'],
  ['slugs', 'Slugs, including deleted'],
  ['tools', 'Tools per server'],
  ['megabytes', 'Configurations and versions, MB'],
  ['versions', 'Versions per server'],
  ['secrets', 'Secrets'],
  ['keys', 'Active API keys'],
  ['members', 'Members and invitations'],
  ['writes', 'Changes per minute'],
  ['daily_writes', 'Changes per day'],
];

type Row = Partial<Quotas[keyof Quotas]> & { label: string };

const columns: Column<Row>[] = [
  { label: 'Quota', cell: ({ label }) => label },
  {
    label: 'Used',
    cell: ({ used }) => (used === undefined ? <span className="th-none" /> : <Count value={used} />),
    isEndAligned: true,
  },
  { label: 'Limit', cell: ({ limit }) => limit?.toLocaleString('en') ?? 'Unlimited', isEndAligned: true },
];

function QuotasSection() {
  const query = useOperationQuery(queryKeys.quotas, 'getWorkspaceQuotas', {});
  return (
    <Section
      title="Quotas"
      text="Set by the operator of this service. Slugs and changes include those in other workspaces of the same creator."
      isFlush
    >
      <Loaded query={query}>
        {(quotas) => {
          const rows = quotaLabels.map(([name, label]) => ({ label, ...quotas[name] }));
          return <Rows label="Quotas" columns={columns} rows={rows} getKey={({ label }) => label} />;
        }}
      </Loaded>
    </Section>
  );
}
