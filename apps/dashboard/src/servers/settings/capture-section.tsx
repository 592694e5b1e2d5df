import { Badge, Button, Group, Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { getFormErrors } from '../../ui/actions/form-errors.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { getErrorMessage } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { Time } from '../../ui/text/time.tsx';
import { useCurrentServer } from '../server-page.tsx';

const spans = [
  { value: '1', label: '1 hour' },
  { value: '4', label: '4 hours' },
  { value: '24', label: '1 day' },
];

/** Section to capture requests and responses of calls for a limited time. */
export function CaptureSection() {
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
      actions={<Badge>{capture_until ? 'On' : 'Off'}</Badge>}
    >
      <Stack gap="sm">
        <ViewerNote>Only editors and owners can turn on capture.</ViewerNote>
        {capture_until && (
          <Text>
            Ends <Time at={capture_until} />. See the{' '}
            <TextLink to={`/calls?server=${server.slug}`} underline="always">
              calls
            </TextLink>
            .
          </Text>
        )}
        <Group gap="sm" align="flex-start">
          <Select
            label="Capture for"
            data={spans}
            value={hours}
            onChange={(value) => setHours(value ?? '1')}
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
