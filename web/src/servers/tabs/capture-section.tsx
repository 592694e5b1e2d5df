import { Anchor, Badge, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { messageOf } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Time } from '../../ui/text/time.tsx';
import { useShownServer } from '../server-page.tsx';

const spans = [
  { value: '1', label: 'one hour' },
  { value: '4', label: 'four hours' },
  { value: '24', label: 'a day' },
];

/** Capturing of requests and answers of calls, for a limited time. */
export function CaptureSection() {
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
