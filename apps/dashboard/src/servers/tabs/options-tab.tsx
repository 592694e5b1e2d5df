import { Anchor, Badge, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { refetchQueries } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { useConfirmation } from '../../ui/actions/use-confirmation.tsx';
import { Section } from '../../ui/section.tsx';
import { getErrorMessage } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { useCurrentServer } from '../server-page.tsx';
import { LimitsSection } from './limits-section.tsx';

export function OptionsTab() {
  const canEdit = useCanEdit();
  return (
    <Stack gap="md">
      <LimitsSection />
      <CaptureSection />
      {canEdit && <DeleteSection />}
    </Stack>
  );
}

const spans = [
  { value: '1', label: '1 hour' },
  { value: '4', label: '4 hours' },
  { value: '24', label: '1 day' },
];

/** Section to capture requests and responses of calls for a limited time. */
function CaptureSection() {
  const { server, capture_until } = useCurrentServer();
  const canEdit = useCanEdit();
  const [hours, setHours] = useState('1');
  const capture = useAction({
    run: (span: number) => api('captureCalls', { slug: server.slug, hours: span }),
    toast: (_, span) => (span > 0 ? 'Capture started' : 'Capture stopped'),
    refresh: [queryKeys.servers],
  });
  const failure = capture.variables === 0 ? capture.error : getFormErrors(capture, Number(hours)).failure;
  return (
    <Section
      title="Capture"
      text="Stores arguments, requests, and the beginning of responses, without credentials, for up to 1 day. They are shown in the call details."
      actions={<Badge color={capture_until ? 'yellow' : 'gray'}>{capture_until ? 'On' : 'Off'}</Badge>}
    >
      <Stack gap="sm">
        <ViewerNote>Only editors and owners can turn on capture.</ViewerNote>
        {capture_until && (
          <Text size="sm">
            Ends <Time at={capture_until} />. See the{' '}
            <Anchor component={Link} to={`/calls?server=${server.slug}`} size="sm" underline="always">
              calls
            </Anchor>
            .
          </Text>
        )}
        <Group gap="sm" align="flex-start">
          <Select
            label="Capture for"
            data={spans}
            value={hours}
            onChange={(value) => setHours(value ?? '1')}
            allowDeselect={false}
            error={failure && getErrorMessage(failure)}
            disabled={!canEdit}
          />
          <Button
            onClick={() => capture.mutate(Number(hours))}
            loading={capture.isPending}
            disabled={!canEdit}
            variant="default"
            className="th-aligned"
          >
            {capture_until ? 'Restart capture' : 'Start capture'}
          </Button>
          {capture_until && (
            <Button onClick={() => capture.mutate(0)} disabled={!canEdit} variant="default" className="th-aligned">
              Stop
            </Button>
          )}
        </Group>
      </Stack>
    </Section>
  );
}

function DeleteSection() {
  const { server } = useCurrentServer();
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useConfirmation({
    title: ({ name }: typeof server) => `Delete ${toVisible(name)}?`,
    text: () => 'All connected clients stop working immediately. You can restore the server for 30 days.',
    action: 'Delete server',
    confirmText: server.slug,
    run: ({ slug }) => api('deleteMcpServer', { slug }),
    toast: (_, { name }) => `Deleted ${toVisible(name)}`,
    onSuccess: async (_, { slug }) => {
      await navigate('/servers');
      client.removeQueries({ queryKey: queryKeys.server(slug) });
      await refetchQueries(client, { queryKey: queryKeys.servers });
    },
  });
  return (
    <Section
      title="Delete server"
      text="You can restore it for 30 days, with its secrets and logins, below the list of servers. Its slug is never reused, so that no one can take over a URL that agents trust."
    >
      <Button color="red.8" variant="outline" onClick={() => remove.ask(server)} c="var(--th-bad)">
        Delete server…
      </Button>
      {remove.dialog}
    </Section>
  );
}
