import { Anchor, Badge, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { readAgain } from '../../query-client.ts';
import { queryKeys } from '../../query-keys.ts';
import { refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { useQuestion } from '../../ui/actions/use-question.tsx';
import { Section } from '../../ui/section.tsx';
import { messageOf } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';
import { useShownServer } from '../server-page.tsx';
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
  { value: '1', label: 'one hour' },
  { value: '4', label: 'four hours' },
  { value: '24', label: 'a day' },
];

/** Capturing of requests and answers of calls, for a limited time. */
function CaptureSection() {
  const { server, capture_until } = useShownServer();
  const canEdit = useCanEdit();
  const [hours, setHours] = useState('1');
  const capture = useAction({
    run: (span: number) => api('captureCalls', { slug: server.slug, hours: span }),
    done: (_, span) => (span > 0 ? 'Calls are captured from now on' : 'Calls are no longer captured'),
    refresh: [queryKeys.servers],
  });
  const failure = capture.variables === 0 ? capture.error : refusalOf(capture, Number(hours)).failure;
  return (
    <Section
      title="Capture"
      text="Keeps arguments, requests and the beginning of answers, without credentials, for a day at most. They show in the details of a call."
      actions={<Badge color={capture_until ? 'yellow' : 'gray'}>{capture_until ? 'On' : 'Off'}</Badge>}
    >
      <Stack gap="sm">
        <ViewerNote>Only editors and owners turn capture on.</ViewerNote>
        {capture_until && (
          <Text size="sm">
            It ends <Time at={capture_until} />. See its{' '}
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
            error={failure && messageOf(failure)}
            disabled={!canEdit}
          />
          <Button
            onClick={() => capture.mutate(Number(hours))}
            loading={capture.isPending}
            disabled={!canEdit}
            variant="default"
            className="th-beside"
          >
            {capture_until ? 'Start anew' : 'Start capturing'}
          </Button>
          {capture_until && (
            <Button onClick={() => capture.mutate(0)} disabled={!canEdit} variant="default" className="th-beside">
              Stop
            </Button>
          )}
        </Group>
      </Stack>
    </Section>
  );
}

function DeleteSection() {
  const { server } = useShownServer();
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useQuestion({
    title: ({ name }: typeof server) => `Delete ${visible(name)}?`,
    text: () => 'Every connected client stops working at once. For 30 days you can restore the server.',
    action: 'Delete server',
    word: server.slug,
    run: ({ slug }) => api('deleteMcpServer', { slug }),
    done: (_, { name }) => `Deleted ${visible(name)}`,
    onDone: async (_, { slug }) => {
      await navigate('/servers');
      client.removeQueries({ queryKey: queryKeys.server(slug) });
      await readAgain(client, { queryKey: queryKeys.servers });
    },
  });
  return (
    <Section
      title="Delete this server"
      text="For 30 days it can be restored, with its secrets and logins, below the list of servers. The slug is never given to another server, so that nobody can take over an address that agents trust."
    >
      <Button color="red.8" variant="outline" onClick={() => remove.ask(server)} c="var(--th-bad)">
        Delete server…
      </Button>
      {remove.dialog}
    </Section>
  );
}
